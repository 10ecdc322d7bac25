"""Statistics over seeds: the mean and range of an encoding, and whether one encoding is better than another.

A trained model is one draw from the distribution of models that its recipe can give. Seeds are those draws: statements
about encodings rest on them, while `liere.evaluation.paired_tests` is about the test examples of given trained models.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import stats

from liere.errors import InputError
from liere.evaluation.intervals import CONFIDENCE, Interval, Values

__all__ = ["SIGNIFICANT", "SeedComparison", "SeedSpread", "compare_seeds", "seed_interval", "seed_spread"]

SIGNIFICANT = 0.05  # p-values below this are called significant


@dataclass(frozen=True)
class SeedSpread:
    """The scores of an encoding over its seeds.

    Attributes:
        mean: Mean over seeds.
        least: Worst seed.
        most: Best seed.
        low: Lower end of the 95 % confidence interval over seeds; None with one seed.
        high: Upper end of the interval.
        seeds: Number of seeds.
    """

    mean: float
    least: float
    most: float
    low: float | None
    high: float | None
    seeds: int

    def as_dict(self) -> dict[str, Any]:
        """Return the spread as a dict for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class SeedComparison:
    """The comparison of two encodings over seeds.

    Attributes:
        difference: Mean of the first minus mean of the second.
        low: Lower end of the 95 % confidence interval of the difference over seeds.
        high: Upper end of the interval.
        p: Two-sided probability of a difference at least as large if both were equally good.
        test: `"paired t test"`, `"Welch's t test"`, or, if there is no spread for a t test, `"exact sign-flip test"` or
            `"exact permutation test"`.
        ahead: Number of pairs of runs in which the first is better; ties count for neither.
        behind: Number of pairs of runs in which the second is better.
        pairs: Number of pairs of runs: one per common seed, or all combinations if there are no common seeds.
    """

    difference: float
    low: float
    high: float
    p: float
    test: str
    ahead: int
    behind: int
    pairs: int

    @property
    def verdict(self) -> int:
        """1 if the first is clearly better, -1 if the second is, 0 if undecided.

        Clearly means in every pair of runs and with p < 0.05 over seeds. Neither is enough alone: three seeds agree by
        chance in one case out of four, and a t test of few seeds relies on normal distributions.
        """
        if self.p >= SIGNIFICANT:
            return 0
        return (self.ahead == self.pairs) - (self.behind == self.pairs)

    @property
    def unit(self) -> str:
        """What is counted: seeds, or pairs of runs if there are no common seeds."""
        return "seeds" if self.test in ("paired t test", "exact sign-flip test") else "pairs of runs"

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as a dict for JSON."""
        return asdict(self) | {"verdict": self.verdict}


def seed_interval(values: Values, *, least: float = 0.0, most: float = 1.0) -> Interval:
    """Return the mean over seeds with its t interval, clipped to the possible range.

    Args:
        values: One value per seed, at least two.
        least: Smallest possible value.
        most: Largest possible value.

    Raises:
        ValueError: If there are fewer than two seeds.

    Example:
        >>> found = seed_interval([0.6, 0.7, 0.8])
        >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
        (0.7, 0.452, 0.948)
        >>> seed_interval([0.3, 0.6, 0.9]).high  # 1.35, which no accuracy can be
        1.0
    """
    if len(values) < 2:
        raise InputError(f"an interval over seeds needs at least two seeds, got {len(values)}")
    mean, reach = float(np.mean(values)), _reach(values)
    if reach == 0:
        return Interval(mean, mean, mean, "constant")
    return Interval(mean, max(least, mean - reach), min(most, mean + reach), "t over seeds")


def seed_spread(values: Values, *, least: float = 0.0, most: float = 1.0) -> SeedSpread:
    """Return mean, range and interval of one value per seed; the interval is None for a single seed.

    Example:
        >>> seed_spread([0.5]).low is None, seed_spread([0.5, 0.7]).least
        (True, 0.5)
    """
    interval = seed_interval(values, least=least, most=most) if len(values) > 1 else None
    return SeedSpread(
        mean=float(np.mean(values)),
        least=float(min(values)),
        most=float(max(values)),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        seeds=len(values),
    )


def compare_seeds(first: Mapping[int, float], second: Mapping[int, float]) -> SeedComparison | None:
    """Return the comparison of two encodings over seeds; higher values are better.

    Seeds that both have are paired in a paired t test. A sign-flip permutation test would assume less, but its smallest
    p-value is 2 / 2^n: 0.25 with three seeds and 0.0625 with five, so it could never decide anything with so few. It is
    used if all differences are equal, which leaves no spread for a t test. Encodings with fewer than two seeds in
    common but at least two each get Welch's t test.

    Args:
        first: One value per seed.
        second: Values of the other encoding.

    Returns:
        The comparison, or None if there are too few seeds for a test.

    Example:
        >>> found = compare_seeds({0: 0.98, 1: 1.0, 2: 0.99}, {0: 0.42, 1: 0.43, 2: 0.44})
        >>> found.ahead, found.p < 0.001, found.verdict
        (3, True, 1)
        >>> compare_seeds({0: 0.97, 1: 0.63, 2: 0.69}, {0: 0.65, 1: 0.67, 2: 0.98}).verdict
        0
        >>> compare_seeds({0: 0.9}, {0: 0.8}) is None
        True
    """
    common = sorted(first.keys() & second.keys())
    if len(common) > 1:
        differences = np.array([first[seed] - second[seed] for seed in common])
        if np.ptp(differences) <= 1e-12:
            p, test = (2.0 ** (1 - len(common)) if abs(differences[0]) > 1e-12 else 1.0), "exact sign-flip test"
        else:
            p, test = float(stats.ttest_1samp(differences, 0).pvalue), "paired t test"
        middle, reach = float(differences.mean()), _reach(differences)
    elif min(len(first), len(second)) > 1:
        one, other = list(first.values()), list(second.values())
        differences = np.subtract.outer(one, other).ravel()
        middle, test = float(np.mean(one) - np.mean(other)), "Welch's t test"
        if np.ptp(one) == np.ptp(other) == 0:
            p, reach = (2 / math.comb(len(one) + len(other), len(one)) if middle else 1.0), 0.0
            test = "exact permutation test"
        else:
            found = stats.ttest_ind(one, other, equal_var=False)
            interval = found.confidence_interval(CONFIDENCE)
            p, reach = float(found.pvalue), float(interval.high - interval.low) / 2
    else:
        return None
    return SeedComparison(
        difference=middle,
        low=middle - reach,
        high=middle + reach,
        p=p,
        test=test,
        ahead=int((differences > 0).sum()),
        behind=int((differences < 0).sum()),
        pairs=len(differences),
    )


def _reach(values: Values) -> float:
    """Return half the width of the t interval of a mean."""
    count = len(values)
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1) * np.std(values, ddof=1) / math.sqrt(count))
