"""Relative accuracy drops, and their difference between two models."""

from __future__ import annotations

import numpy as np

from liere.errors import InputError
from liere.evaluation.intervals import Floats, Interval, Values, percentile_interval
from liere.evaluation.paired_tests import checked_pairs
from liere.evaluation.resampling import PAIRED_RESAMPLES, resampled_means

__all__ = ["drop_difference", "relative_drop"]


def relative_drop(before: Values, after: Values, *, seed: int = 0, resamples: int = PAIRED_RESAMPLES) -> Interval:
    """Return the relative drop of an accuracy, 1 - after / before, with its bootstrap interval over examples.

    Each example is drawn with both of its answers. Resamples without a correct answer before, which may occur if there
    are few, are left out.

    Args:
        before: 1 for a correct answer, 0 for a wrong one; or fractions of correct answers over several models.
        after: Answers for the same examples after a change, for example with shuffled patches.
        seed: Seed of the resamples.
        resamples: Number of resamples.

    Raises:
        ValueError: If no answer was correct before, values are not in [0, 1], or the lengths differ.

    Example:
        >>> found = relative_drop([1] * 80 + [0] * 20, [1] * 20 + [0] * 80)
        >>> found.value, 0.6 < found.low < found.value < found.high < 0.9
        (0.75, True)
    """
    pairs = checked_pairs(before=before, after=after)
    if pairs.min() < 0 or pairs.max() > 1:
        raise InputError(
            f"before and after must be between 0 (wrong) and 1 (correct), got {pairs.min():g} to {pairs.max():g}"
        )
    if not pairs[0].any():
        raise InputError("before has no correct answer: a relative drop needs an accuracy above 0")
    means = resampled_means(pairs, seed, resamples)
    means = means[:, means[0] > 0]
    ends = pairs.mean(axis=1)
    return percentile_interval(float(1 - ends[1] / ends[0]), 1 - means[1] / means[0])


def drop_difference(
    first: tuple[Values, Values], second: tuple[Values, Values], *, seed: int = 0, resamples: int = PAIRED_RESAMPLES
) -> Interval:
    """Return the first relative drop minus the second, with its paired bootstrap interval.

    Args:
        first: Answers of a model before and after, as for `relative_drop`.
        second: Answers of another model for the same examples.
        seed: Seed of the resamples.
        resamples: Number of resamples.

    Raises:
        ValueError: If no answer was correct before, or the lengths differ.

    Example:
        >>> some, few, none = [1] * 50 + [0] * 50, [1] * 25 + [0] * 75, [0] * 100
        >>> drop_difference((some, none), (some, few)).value
        0.5
    """
    columns = np.concatenate([checked_pairs(before=before, after=after) for before, after in (first, second)])
    if not (columns[0].any() and columns[2].any()):
        raise InputError("before has no correct answer: a relative drop needs an accuracy above 0")

    def difference(means: Floats) -> Floats:
        return means[3] / means[2] - means[1] / means[0]

    means = resampled_means(columns, seed, resamples)
    means = means[:, (means[0] > 0) & (means[2] > 0)]
    return percentile_interval(float(difference(columns.mean(axis=1, keepdims=True))[0]), difference(means))
