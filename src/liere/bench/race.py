"""Timing of several candidates in turns, with ratios taken within a round.

The speed of a machine varies. A slowdown that lasts longer than a round affects all candidates of the round, so the
ratio of two of them within a round is more stable than the ratio of their median times.
"""

from __future__ import annotations

import gc
import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from liere.errors import InputError

__all__ = ["Race", "Spread", "Watch", "race", "spread", "watch_nothing"]

Watch = Callable[[str, int, int], None]
"""Progress callback: called with the name of a race, the rounds done (0 during the warm-up) and the total rounds."""

# A shorter turn is repeated within the round, since the clock and cold caches would dominate it.
TURN_SECONDS = 0.02
MAX_CALLS = 100


class Spread(NamedTuple):
    """The median and quartiles of several measurements."""

    low: float
    median: float
    high: float

    def as_dict(self) -> dict[str, float | list[float]]:
        """Return a dict for JSON."""
        return {"median": self.median, "quartiles": [self.low, self.high]}


def spread(values: Sequence[float]) -> Spread:
    """Return the median and quartiles of the values.

    Example:
        >>> spread([4.0, 1.0, 2.0, 3.0, 5.0])
        Spread(low=2.0, median=3.0, high=4.0)
    """
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    return Spread(*statistics.quantiles(values, n=4, method="inclusive"))


@dataclass(frozen=True)
class Race:
    """The times of all candidates.

    Attributes:
        baseline: The candidate that the others are compared with.
        seconds: Seconds per call for each candidate, one entry per round.
    """

    baseline: str
    seconds: dict[str, list[float]]

    def times(self, name: str) -> Spread:
        """Return the seconds that a candidate takes."""
        return spread(self.seconds[name])

    def ratio(self, name: str, to: str | None = None) -> Spread:
        """Return the time of a candidate relative to the baseline, or to another one, compared round by round."""
        return self._compare(lambda own, base: own / base, name, to)

    def speedup(self, name: str) -> Spread:
        """Return the speedup of a candidate over the baseline, compared round by round."""
        return self._compare(lambda own, base: base / own, name)

    def excess(self, name: str) -> Spread:
        """Return the additional seconds of a candidate over the baseline, compared round by round."""
        return self._compare(lambda own, base: own - base, name)

    def summary(self, name: str) -> dict[str, Any]:
        """Return times and ratios of a contestant, as JSON holds them."""
        return {"seconds": self.times(name).as_dict(), "ratio": self.ratio(name).as_dict()}

    def _compare(self, how: Callable[[float, float], float], name: str, to: str | None = None) -> Spread:
        base = self.seconds[self.baseline if to is None else to]
        return spread([how(*pair) for pair in zip(self.seconds[name], base, strict=True)])


def watch_nothing(name: str, done: int, total: int) -> None:
    """Ignore progress."""


def race(
    contestants: Mapping[str, Callable[[], object]],
    rounds: int,
    *,
    name: str = "",
    watch: Watch = watch_nothing,
    clock: Callable[[], float] = time.perf_counter,
) -> Race:
    """Time several candidates in turns; the first is the baseline.

    Each candidate is called once to warm up. In every round each has one turn, in a random order that is drawn for each
    round from a fixed seed. A turn is one call, or as many as take about 20 ms.

    Args:
        contestants: Functions to time, by name.
        rounds: Number of turns of each candidate.
        name: Name of this race, passed to `watch`.
        watch: Progress callback.
        clock: Function that returns the time in seconds.

    Raises:
        ValueError: If there are no candidates or no rounds.

    Example:
        >>> result = race({"one": lambda: sum(range(1000)), "ten": lambda: sum(range(10_000))}, rounds=3)
        >>> result.ratio("one")
        Spread(low=1.0, median=1.0, high=1.0)
    """
    if not contestants:
        raise InputError("contestants is empty: give at least one")
    if rounds < 1:
        raise InputError(f"rounds must be at least 1, got {rounds}")
    watch(name, 0, rounds)
    calls = {contestant: _calls_of_a_turn(_turn(call, 1, clock)) for contestant, call in contestants.items()}
    seconds: dict[str, list[float]] = {contestant: [] for contestant in contestants}
    order, chance = list(contestants), random.Random(0)
    for done in range(1, rounds + 1):
        gc.collect()
        chance.shuffle(order)
        for contestant in order:
            seconds[contestant].append(_turn(contestants[contestant], calls[contestant], clock))
        watch(name, done, rounds)
    return Race(next(iter(contestants)), seconds)


def _turn(call: Callable[[], object], calls: int, clock: Callable[[], float]) -> float:
    """Return the seconds per call."""
    start = clock()
    for _ in range(calls):
        call()
    return (clock() - start) / calls


def _calls_of_a_turn(seconds: float) -> int:
    return min(MAX_CALLS, max(1, math.ceil(TURN_SECONDS / max(seconds, 1e-9))))
