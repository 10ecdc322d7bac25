"""A measured value with its uncertainty over test examples and over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from liere.evaluation.intervals import Interval
from liere.evaluation.seeds import SeedSpread, seed_spread
from liere.report.chart_points import Point

__all__ = ["Measured"]


@dataclass(frozen=True)
class Measured:
    """A mean over seeds.

    Attributes:
        interval: The mean, with its interval over test examples.
        by_seed: One value per seed.
        least: Smallest possible value.
        most: Largest possible value.
    """

    interval: Interval
    by_seed: Sequence[float]
    least: float = 0.0
    most: float = 1.0

    @property
    def value(self) -> float:
        """The mean."""
        return self.interval.value

    @property
    def over_seeds(self) -> SeedSpread:
        """Mean, range and interval over seeds."""
        return seed_spread(self.by_seed, least=self.least, most=self.most)

    @property
    def ends(self) -> tuple[float, float]:
        """The worst and the best seed; with one seed, the ends of the interval over test examples.

        Example:
            >>> interval = Interval(0.5, 0.45, 0.55, "Jeffreys")
            >>> Measured(interval, [0.5]).ends, Measured(interval, [0.3, 0.7]).ends
            ((0.45, 0.55), (0.3, 0.7))
        """
        if len(self.by_seed) > 1:
            return min(self.by_seed), max(self.by_seed)
        return self.interval.low, self.interval.high

    def point(self, scale: float = 100) -> Point:
        """Return it as a point of a chart, with an interval over seeds, or over test examples if there is one seed."""
        seeds = [scale * value for value in self.by_seed]
        spread = self.over_seeds
        low, high = (self.interval.low, self.interval.high) if spread.low is None else (spread.low, spread.high)
        return Point(scale * self.value, seeds, scale * low, scale * high)  # type: ignore[operator]

    def as_dict(self) -> dict[str, Any]:
        """Return it as a dict for JSON: the interval over test examples, each seed, and the spread over seeds."""
        spread = self.over_seeds
        seeds = {"least": spread.least, "most": spread.most, "low": spread.low, "high": spread.high}
        return self.interval.as_dict() | {"by_seed": [*map(float, self.by_seed)], "over_seeds": seeds}
