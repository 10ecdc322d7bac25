"""How much of an accuracy is lost, and whether one model loses more than another."""

from __future__ import annotations

import numpy as np

from liere.errors import InputError
from liere.evaluation.intervals import Floats, Interval, Values, percentile_interval
from liere.evaluation.paired_tests import checked_pairs
from liere.evaluation.resampling import PAIRED_RESAMPLES, resampled_means

__all__ = ["drop_difference", "relative_drop"]


def relative_drop(before: Values, after: Values, *, seed: int = 0, resamples: int = PAIRED_RESAMPLES) -> Interval:
    """Return which part of an accuracy is lost, 1 - after / before, with its bootstrap interval over examples.

    Examples are drawn with both of their answers. Resamples without a right answer before, which may occur where there
    are few, are left out.

    Args:
        before: 1 for a right answer, 0 for a wrong one; or shares of right answers over several models.
        after: The same examples' answers after something was done to them, their patches were shuffled say.
        seed: Seed of the resamples.
        resamples: How many to draw.

    Raises:
        ValueError: If nothing was right before, values are not from 0 to 1, or there are not as many of both.

    Example:
        >>> found = relative_drop([1] * 80 + [0] * 20, [1] * 20 + [0] * 80)
        >>> found.value, 0.6 < found.low < found.value < found.high < 0.9
        (0.75, True)
    """
    pairs = checked_pairs(before=before, after=after)
    if pairs.min() < 0 or pairs.max() > 1:
        raise InputError(
            f"before and after must be from 0 (wrong) to 1 (right), got {pairs.min():g} to {pairs.max():g}"
        )
    if not pairs[0].any():
        raise InputError("before has no right answer: a relative drop needs an accuracy above 0")
    means = resampled_means(pairs, seed, resamples)
    means = means[:, means[0] > 0]
    ends = pairs.mean(axis=1)
    return percentile_interval(float(1 - ends[1] / ends[0]), 1 - means[1] / means[0])


def drop_difference(
    first: tuple[Values, Values], second: tuple[Values, Values], *, seed: int = 0, resamples: int = PAIRED_RESAMPLES
) -> Interval:
    """Return by how much the first's relative drop is larger than the second's, with its paired bootstrap interval.

    Args:
        first: Answers before and after, as for `relative_drop`.
        second: Those of another model, on the same examples.
        seed: Seed of the resamples.
        resamples: How many to draw.

    Raises:
        ValueError: If nothing was right before, or there are not as many of all four.

    Example:
        >>> some, few, none = [1] * 50 + [0] * 50, [1] * 25 + [0] * 75, [0] * 100
        >>> drop_difference((some, none), (some, few)).value
        0.5
    """
    columns = np.concatenate([checked_pairs(before=before, after=after) for before, after in (first, second)])
    if not (columns[0].any() and columns[2].any()):
        raise InputError("before has no right answer: a relative drop needs an accuracy above 0")

    def difference(means: Floats) -> Floats:
        return means[3] / means[2] - means[1] / means[0]

    means = resampled_means(columns, seed, resamples)
    means = means[:, (means[0] > 0) & (means[2] > 0)]
    return percentile_interval(float(difference(columns.mean(axis=1, keepdims=True))[0]), difference(means))
