"""Confidence intervals and paired tests over examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

__all__ = ["Interval", "PairedDifference", "accuracy_interval", "mean_interval", "paired_difference"]

CONFIDENCE = 0.95
RESAMPLES = 1000  # B of the paper
RESAMPLES_AT_ONCE = 50  # bounds the memory
FLIPS = 9999
FLIPS_AT_ONCE = 500

Values = Sequence[float] | NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % confidence interval.

    Attributes:
        value: The mean.
        low: Lower end.
        high: Upper end.
        method: `"bootstrap"`, `"exact binomial"`, or `"constant"` where all values are the same.
    """

    value: float
    low: float
    high: float
    method: str

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return asdict(self)


@dataclass(frozen=True)
class PairedDifference:
    """How much better one is than another on the same examples.

    Attributes:
        interval: Mean difference.
        p: Two-sided probability of so large a mean difference if both were equally good: McNemar's exact test for right
            and wrong answers, else a permutation test that flips the signs of differences.
    """

    interval: Interval
    p: float


def mean_interval(values: Values, *, seed: int = 0) -> Interval:
    """Return the mean with its percentile bootstrap interval (B = 1000), as in the paper.

    Example:
        >>> mean_interval([1.0, 2.0, 3.0, 4.0] * 25).value
        2.5
        >>> mean_interval([2.0, 2.0]).method
        'constant'
    """
    values = np.asarray(values, dtype=np.float64)
    _check(values)
    mean = float(values.mean())
    if np.ptp(values) == 0:
        return Interval(mean, mean, mean, "constant")
    found = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=RESAMPLES,
        batch=RESAMPLES_AT_ONCE,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(mean, float(found.low), float(found.high), "bootstrap")


def accuracy_interval(correct: Values, *, seed: int = 0) -> Interval:
    """Return the accuracy with its interval: bootstrap, or exact binomial (Clopper-Pearson) at 0 and 100 %.

    Args:
        correct: 1 for a right answer, 0 for a wrong one; or shares of right answers over several models.
        seed: Seed of the resamples.

    Example:
        >>> found = accuracy_interval([1] * 1000)
        >>> round(found.low, 4), found.high, found.method
        (0.9963, 1.0, 'exact binomial')
    """
    correct = np.asarray(correct, dtype=np.float64)
    _check(correct)
    right = correct.sum()
    if right in (0, len(correct)):
        found = stats.binomtest(int(right), len(correct)).proportion_ci(CONFIDENCE, method="exact")
        return Interval(float(right / len(correct)), float(found.low), float(found.high), "exact binomial")
    return mean_interval(correct, seed=seed)


def paired_difference(first: Values, second: Values, *, seed: int = 0) -> PairedDifference:
    """Compare two on the same examples.

    Args:
        first: A value for each example.
        second: The other's value for each example, in the same order.
        seed: Seed of the resamples.

    Raises:
        ValueError: If there are not as many of both.

    Example:
        >>> paired_difference([1, 1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0, 0]).p
        0.03125
    """
    if len(first) != len(second):
        raise ValueError(f"pairs need the same examples: first has {len(first)} values, second has {len(second)}")
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    return PairedDifference(mean_interval(differences, seed=seed), _sign_flip_p(differences[differences != 0], seed))


def _sign_flip_p(differences: NDArray[np.float64], seed: int) -> float:
    """Return how probable so large a sum is when signs are chance; zeros have been left out, which changes nothing."""
    if not len(differences):
        return 1.0
    sizes = np.abs(differences)
    if np.ptp(sizes) == 0:  # only the number of signs matters
        return float(stats.binomtest(int((differences > 0).sum()), len(differences)).pvalue)
    found = stats.permutation_test(
        (differences, np.zeros_like(differences)),
        lambda first, second, axis: (first - second).sum(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=FLIPS,
        batch=FLIPS_AT_ONCE,
        rng=np.random.default_rng(seed),
    )
    return float(found.pvalue)


def _check(values: NDArray[np.float64]) -> None:
    if values.ndim != 1 or not len(values):
        raise ValueError(f"an interval needs a list of at least one value, got shape {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError("an interval needs finite values: some are infinite or not a number")
