"""Bootstrap means over test examples."""

from __future__ import annotations

import numpy as np

from liere.evaluation.intervals import Floats

__all__ = ["PAIRED_RESAMPLES", "resampled_means"]

PAIRED_RESAMPLES = 10_000
DRAWS_AT_ONCE = 1 << 21  # bounds the memory
DISTINCT = 64  # up to this many distinct values, counts are drawn instead of examples


def resampled_means(columns: Floats, seed: int, resamples: int) -> Floats:
    """Return the mean of each column over examples drawn with replacement, `[columns, resamples]`.

    If there are few distinct examples, such as right and wrong answers, their multinomial counts are drawn instead.
    """
    dice, count = np.random.default_rng(seed), columns.shape[1]
    distinct, counts = np.unique(columns, axis=1, return_counts=True)
    if len(counts) <= DISTINCT:
        return distinct @ dice.multinomial(count, counts / count, size=resamples).T / count
    at_once = max(1, DRAWS_AT_ONCE // count)
    means = np.empty((len(columns), resamples))
    for start in range(0, resamples, at_once):
        drawn = dice.integers(count, size=(min(at_once, resamples - start), count))
        for column, out in zip(columns, means, strict=True):
            out[start : start + len(drawn)] = column[drawn].mean(axis=1)
    return means
