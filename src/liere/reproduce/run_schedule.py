"""A schedule of many runs, several at a time: the longest first."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Placed", "Schedule", "Task", "make_schedule"]


@dataclass(frozen=True)
class Task:
    """A run to schedule.

    Attributes:
        name: Its name, different from all others.
        seconds: Training time without failures, on the GPUs of a slot.
        saved_every: Seconds between its checkpoints.
        after: Name of the run whose weights it starts from; None if it can start at any time.
        groups: Tables that need it.
    """

    name: str
    seconds: float
    saved_every: float
    after: str | None = None
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Placed:
    """A run with its place in a schedule: its slot, and the seconds at which it starts and ends."""

    task: Task
    slot: int
    start: float
    end: float


@dataclass(frozen=True)
class Schedule:
    """A schedule of runs.

    Attributes:
        slots: Number of runs at a time.
        placed: All runs, in the order in which they start; a run comes after the one that it starts from.
    """

    slots: int
    placed: list[Placed]

    @property
    def makespan(self) -> float:
        """Seconds until the last run ends."""
        return max((one.end for one in self.placed), default=0.0)

    @property
    def work(self) -> float:
        """Seconds of all runs together."""
        return sum(one.task.seconds for one in self.placed)

    @property
    def utilization(self) -> float:
        """Share of the time until the end during which a slot has a run."""
        return self.work / (self.slots * self.makespan) if self.placed else 0.0


def make_schedule(tasks: Sequence[Task], slots: int) -> Schedule:
    """Return a schedule: whenever a slot is free, it takes the run with the most work left to wait for.

    That work is the time of the run, and of the longest chain of runs that start from its weights. Without such
    chains, the schedule takes at most 4/3 of the shortest possible time (Graham 1969).

    Args:
        tasks: The runs. One that starts from a run which is not among them can start at any time.
        slots: Number of runs at a time.

    Example:
        >>> tasks = [Task(name, seconds, saved_every=1) for name, seconds in [("a", 2), ("b", 3), ("c", 4)]]
        >>> [(one.task.name, one.slot, one.start, one.end) for one in make_schedule(tasks, 2).placed]
        [('c', 0, 0.0, 4.0), ('b', 1, 0.0, 3.0), ('a', 1, 3.0, 5.0)]
    """
    followers: dict[str | None, list[Task]] = {}
    names = {task.name for task in tasks}
    for task in tasks:
        followers.setdefault(task.after if task.after in names else None, []).append(task)

    def chain(task: Task) -> float:
        return task.seconds + max(map(chain, followers.get(task.name, [])), default=0.0)

    order = {task.name: place for place, task in enumerate(tasks)}

    def release(freed: list[Task]) -> None:
        for task in freed:
            heapq.heappush(ready, (-chain(task), order[task.name], task))

    ready: list[tuple[float, int, Task]] = []
    running: list[tuple[float, int, Task]] = []
    free = list(range(slots))
    placed: list[Placed] = []
    now = 0.0
    release(followers.get(None, []))
    while ready or running:
        while ready and free:
            task, slot = heapq.heappop(ready)[2], heapq.heappop(free)
            placed.append(Placed(task, slot, now, now + task.seconds))
            heapq.heappush(running, (now + task.seconds, slot, task))
        now, slot, task = heapq.heappop(running)
        heapq.heappush(free, slot)
        release(followers.get(task.name, []))
    return Schedule(slots, placed)
