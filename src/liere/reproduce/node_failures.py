"""Failures of nodes during a schedule: what they cost with and without resuming, by simulation."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from liere.reproduce.run_schedule import Schedule

__all__ = ["GPUS_PER_NODE", "RESTART", "Trial", "finish_time", "simulate_failures"]

GPUS_PER_NODE = 8
RESTART = 600.0
"""Seconds until the runs of a failed node continue, there or on another one."""
DAY = 86_400.0
HOPELESS = 100
"""A run is given up if it is not finished after this multiple of the time of the whole schedule."""


@dataclass(frozen=True)
class Trial:
    """The outcome of a simulated schedule.

    Attributes:
        makespan: Seconds until the last run ends; infinite if a run cannot finish.
        lost: GPU seconds of repeated work and of waiting for nodes.
    """

    makespan: float
    lost: float


def finish_time(
    start: float,
    work: float,
    failures: Iterable[float],
    *,
    saved_every: float | None,
    restart: float = 0.0,
    give_up: float = math.inf,
) -> float:
    """Return when a run ends whose node fails at given times.

    Args:
        start: Time at which the run could start.
        work: Seconds that it takes without failures.
        failures: Times of the failures, ascending.
        saved_every: Seconds of work between checkpoints; None if a failure loses all work.
        restart: Seconds from a failure until the run continues.
        give_up: Time after which the run counts as never finished: the result is then infinite.

    Example:
        >>> finish_time(0, 10, [7], saved_every=None), finish_time(0, 10, [7], saved_every=3, restart=1)
        (17.0, 12.0)
    """
    now, done = start, 0.0
    for failure in failures:
        if now > give_up:
            return math.inf
        if failure <= now:  # the node may still be down
            now = max(now, failure + restart)
            continue
        if now + work - done <= failure:
            break
        done += failure - now
        done = done // saved_every * saved_every if saved_every else 0.0
        now = failure + restart
    return now + work - done


def simulate_failures(
    schedule: Schedule,
    *,
    per_day: float,
    resume: bool,
    trials: int,
    seed: int = 0,
    restart: float = RESTART,
    gpus_per_run: int = 1,
) -> list[Trial]:
    """Return outcomes of a schedule in which nodes fail at random; the seed decides when, with or without resuming.

    A simulation in which a run cannot finish is the last one.

    Failures come independently of each other, equally often at every node. All runs of the node stop, and continue
    after `restart` seconds: from their last checkpoints, or from the beginning. Each slot keeps the runs that the
    schedule gave it.

    Args:
        schedule: The schedule.
        per_day: Mean number of failures per day among all nodes.
        resume: Whether runs continue from their last checkpoints.
        trials: Number of simulations.
        seed: Seed of the failures.
        restart: Seconds until the runs of a failed node continue.
        gpus_per_run: GPUs of a slot; a run on several nodes stops if one of them fails.
    """
    nodes = -(-schedule.slots * gpus_per_run // GPUS_PER_NODE)
    rate = per_day / nodes / DAY
    found = list[Trial]()
    for trial in range(trials):
        of_node = [_Failures(rate, f"{seed} {trial} {node}") for node in range(nodes)]
        of_slot = [of_node[_nodes(slot, gpus_per_run)] for slot in range(schedule.slots)]
        one = _simulate(schedule, of_slot, resume, restart)
        found.append(Trial(one.makespan, gpus_per_run * one.lost))
        if math.isinf(one.makespan):
            break
    return found


def _nodes(slot: int, gpus: int) -> slice:
    """Return the nodes of a slot."""
    return slice(slot * gpus // GPUS_PER_NODE, ((slot + 1) * gpus - 1) // GPUS_PER_NODE + 1)


def _simulate(schedule: Schedule, failures: Sequence[Sequence[_Failures]], resume: bool, restart: float) -> Trial:
    free = [0.0] * schedule.slots
    ends: dict[str, float] = {}
    lost = 0.0
    for one in schedule.placed:
        start = max(free[one.slot], ends.get(one.task.after or "", 0.0))
        end = finish_time(
            start,
            one.task.seconds,
            heapq.merge(*failures[one.slot]),
            saved_every=one.task.saved_every if resume else None,
            restart=restart,
            give_up=HOPELESS * schedule.makespan,
        )
        if math.isinf(end):
            return Trial(math.inf, math.inf)
        lost += end - start - one.task.seconds
        free[one.slot] = ends[one.task.name] = end
    return Trial(max(ends.values(), default=0.0), lost)


class _Failures:
    """The endless times of the failures of a node, the same whenever they are read."""

    def __init__(self, rate: float, seed: str) -> None:
        self.rate, self.random = rate, random.Random(seed)
        self.times: list[float] = []

    def __iter__(self) -> Iterator[float]:
        place = 0
        while self.rate:
            if place == len(self.times):
                self.times.append((self.times[-1] if place else 0.0) + self.random.expovariate(self.rate))
            yield self.times[place]
            place += 1
