"""Schedules of many runs."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from liere.reproduce.run_schedule import Schedule, Task, make_schedule

LENGTHS = st.lists(st.integers(1, 50), min_size=1, max_size=12)


def tasks_of(lengths: list[int]) -> list[Task]:
    return [Task(f"run{place}", float(length), saved_every=1.0) for place, length in enumerate(lengths)]


CHAINS = st.lists(st.tuples(st.integers(1, 50), st.none() | st.integers(1, 12)), min_size=1, max_size=12)


def chained_tasks(chains: list[tuple[int, int | None]]) -> list[Task]:
    """Return runs of which some start from the weights of one so many places before; the last come first."""
    tasks = [
        Task(f"run{place}", float(length), 1.0, f"run{place - before}" if before and before <= place else None)
        for place, (length, before) in enumerate(chains)
    ]
    return tasks[::-1]


def check(schedule: Schedule, tasks: list[Task]) -> None:
    """Every run is placed once, alone in its slot, after the run that it starts from."""
    assert sorted(one.task.name for one in schedule.placed) == sorted(task.name for task in tasks)
    assert [one.start for one in schedule.placed] == sorted(one.start for one in schedule.placed)
    ends: dict[str, float] = {}
    for one in schedule.placed:
        assert one.end == one.start + one.task.seconds
        assert 0 <= one.slot < schedule.slots
        assert one.start >= ends.get(one.task.after, 0.0)
        assert one.task.after is None or one.task.after in ends
        ends[one.task.name] = one.end
    for slot in range(schedule.slots):
        own = [one for one in schedule.placed if one.slot == slot]
        assert all(first.end <= second.start for first, second in itertools.pairwise(own))


@given(CHAINS, st.integers(1, 5))
def test_a_schedule_is_valid_and_not_shorter_than_its_bounds(chains, slots):
    tasks = chained_tasks(chains)
    schedule = make_schedule(tasks, slots)
    check(schedule, tasks)
    total, longest = sum(task.seconds for task in tasks), max(task.seconds for task in tasks)
    assert schedule.work == total
    assert schedule.makespan >= max(total / slots, longest)
    assert schedule.makespan <= total
    assert schedule.utilization == pytest.approx(total / slots / schedule.makespan)
    assert 0 < schedule.utilization <= 1


@given(LENGTHS, st.integers(1, 5))
def test_independent_runs_are_within_the_bound_of_list_scheduling(lengths, slots):
    schedule = make_schedule(tasks_of(lengths), slots)
    assert schedule.makespan <= sum(lengths) / slots + (1 - 1 / slots) * max(lengths) + 1e-9


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 3))
def test_longest_first_is_within_a_third_of_the_optimum(lengths, slots):
    best = min(
        max(sum(length for length, own in zip(lengths, places, strict=True) if own == slot) for slot in range(slots))
        for places in itertools.product(range(slots), repeat=len(lengths))
    )
    schedule = make_schedule(tasks_of(lengths), slots)
    assert best <= schedule.makespan <= (4 / 3 - 1 / (3 * slots)) * best + 1e-9


def test_a_run_that_others_wait_for_comes_first():
    tasks = [Task("long", 5.0, 1.0), Task("source", 3.0, 1.0), Task("tuned", 4.0, 1.0, after="source")]
    starts = {one.task.name: one.start for one in make_schedule(tasks, 1).placed}
    assert starts == {"source": 0.0, "long": 3.0, "tuned": 8.0}
    assert make_schedule(tasks, 2).makespan == 7.0


def test_a_run_whose_source_is_finished_starts_at_once():
    assert make_schedule([Task("tuned", 4.0, 1.0, after="finished")], 2).makespan == 4.0


def test_no_runs():
    schedule = make_schedule([], 3)
    assert (schedule.makespan, schedule.work, schedule.utilization) == (0.0, 0, 0.0)
    assert math.isfinite(schedule.utilization)
