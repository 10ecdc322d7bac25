"""Paired tests: is one model better than another on the same test examples?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from liere.errors import InputError
from liere.evaluation.intervals import (
    ROUNDING,
    TAIL,
    Floats,
    Interval,
    Values,
    checked_values,
    mean_interval,
    percentile_interval,
)
from liere.evaluation.resampling import PAIRED_RESAMPLES, resampled_means

__all__ = [
    "PairedBootstrap",
    "PairedDifference",
    "PairedZ",
    "checked_pairs",
    "paired_bootstrap",
    "paired_difference",
    "paired_z_test",
]

FLIPS = 9999
FLIPS_AT_ONCE = 500


@dataclass(frozen=True)
class PairedDifference:
    """Difference between two models on the same examples.

    Attributes:
        interval: Mean difference.
        p: Two-sided probability of a mean difference at least as large if both were equally good: McNemar's exact test
            for right and wrong answers, else a permutation test that flips the signs of differences.
    """

    interval: Interval
    p: float


@dataclass(frozen=True)
class PairedZ:
    """Result of the paper's "Paired Z-test" of two models on the same examples.

    Attributes:
        z: Mean difference in units of its standard error.
        p: Two-sided probability of a `z` at least as large if both were equally good.
        difference: Mean of the first minus mean of the second.
        low: Lower end of the 95 % confidence interval of the difference.
        high: Upper end of the interval.
    """

    z: float
    p: float
    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class PairedBootstrap:
    """Result of a paired bootstrap of two models.

    Attributes:
        interval: Mean difference, percentile bootstrap.
        p: Two-sided: twice the share of resamples in which the difference has the opposite sign or is 0; at least
            2 / (resamples + 1).
    """

    interval: Interval
    p: float


def paired_difference(first: Values, second: Values, *, seed: int = 0) -> PairedDifference:
    """Return the difference between two models on the same examples, with interval and p-value.

    Args:
        first: One value per example.
        second: Values of the other model for the same examples in the same order.
        seed: Seed of the resamples.

    Raises:
        ValueError: If the lengths differ.

    Example:
        >>> paired_difference([1, 1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0, 0]).p
        0.03125
    """
    differences = np.subtract(*checked_pairs(first=first, second=second))
    return PairedDifference(mean_interval(differences, seed=seed), _sign_flip_p(differences[differences != 0], seed))


def paired_z_test(first: Values, second: Values) -> PairedZ:
    """Return the paired Z-test of two models on the same examples, as in the paper's table of initializations.

    If all differences are equal, their standard error is 0: `z` is then 0 if they are 0, else infinite.

    Args:
        first: One value per example.
        second: Values of the other model for the same examples in the same order.

    Raises:
        ValueError: If the lengths differ or are less than two.

    Example:
        >>> found = paired_z_test([1] * 60 + [0] * 40, [1] * 45 + [0] * 55)
        >>> round(found.z, 2), round(found.p, 5), round(found.difference, 2)
        (4.18, 3e-05, 0.15)
    """
    differences = np.subtract(*checked_pairs(first=first, second=second))
    if len(differences) < 2:
        raise InputError("a paired Z-test needs at least two examples, because one pair has no variance: add examples")
    mean = float(differences.mean())
    if np.ptp(differences) == 0:
        z = math.copysign(math.inf, mean) if mean else 0.0
        return PairedZ(z, float(z == 0), mean, mean, mean)
    error = float(differences.std(ddof=1)) / math.sqrt(len(differences))
    reach = float(special.ndtri(1 - TAIL)) * error
    z = mean / error
    return PairedZ(z, float(2 * special.ndtr(-abs(z))), mean, mean - reach, mean + reach)


def paired_bootstrap(
    first: Values, second: Values, *, seed: int = 0, resamples: int = PAIRED_RESAMPLES
) -> PairedBootstrap:
    """Return the paired bootstrap of two models: examples are resampled with both of their answers.

    If the models differ in only a few examples, a bootstrap is overconfident: prefer `paired_difference`.

    Args:
        first: One value per example.
        second: Values of the other model for the same examples in the same order.
        seed: Seed of the resamples.
        resamples: Number of resamples.

    Raises:
        ValueError: If the lengths differ.

    Example:
        >>> found = paired_bootstrap([1] * 60 + [0] * 40, [1] * 45 + [0] * 55)
        >>> round(found.interval.value, 2), found.interval.low > 0, found.p < 0.001
        (0.15, True, True)
    """
    differences = np.subtract(*checked_pairs(first=first, second=second))
    (means,) = resampled_means(differences[None], seed, resamples)
    means[np.abs(means) <= ROUNDING * np.abs(differences).max()] = 0
    rarer = min(int((means <= 0).sum()), int((means >= 0).sum()))
    p = min(1.0, 2 * (rarer + 1) / (resamples + 1))
    return PairedBootstrap(percentile_interval(float(differences.mean()), means), p)


def checked_pairs(**named: Values) -> Floats:
    """Return two lists as an array `[2, examples]`."""
    (one, first), (other, second) = ((name, checked_values(values)) for name, values in named.items())
    if len(first) != len(second):
        raise InputError(
            f"pairs need the same examples, but {one} has {len(first)} values and {other} has {len(second)}"
        )
    return np.stack([first, second])


def _sign_flip_p(differences: Floats, seed: int) -> float:
    """Return the probability of a sum at least as large with random signs; zeros do not matter and are left out."""
    if not len(differences):
        return 1.0
    sizes = np.abs(differences)
    if abs(differences.sum()) <= ROUNDING * sizes.sum():  # no difference is smaller
        return 1.0
    if np.ptp(sizes) <= ROUNDING:  # equal sizes: only the number of positive signs matters
        return float(stats.binomtest(int((differences > 0).sum()), len(differences)).pvalue)
    found = stats.permutation_test(
        (differences, np.zeros_like(differences)),
        lambda first, second, axis: (first - second).sum(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=FLIPS,
        batch=max(FLIPS_AT_ONCE * 10_000 // max(len(differences), 10_000), 1),  # bounds the memory
        rng=np.random.default_rng(seed),
    )
    return float(found.pvalue)
