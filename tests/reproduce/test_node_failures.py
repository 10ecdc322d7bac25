"""The simulation of failing nodes."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from liere.reproduce.node_failures import DAY, GPUS_PER_NODE, _nodes, finish_time, simulate_failures
from liere.reproduce.run_schedule import Task, make_schedule

TIMES = st.lists(st.integers(1, 200), max_size=12).map(sorted)


def step_by_step(start: int, work: int, failures: list[int], saved_every: int | None, restart: int) -> int:
    """Return when a run ends, second by second. A failure at time t loses the work up to t."""
    now, done, down_until = start, 0, -1
    for failure in failures:
        if failure <= start:
            down_until = failure + restart
    while done < work:
        if now >= down_until:
            done += 1
        now += 1
        if now in failures and done < work:
            done = done // saved_every * saved_every if saved_every else 0
            down_until = now + restart
    return now


@given(st.integers(0, 50), st.integers(1, 40), TIMES, st.none() | st.integers(1, 20), st.integers(0, 10))
def test_a_run_ends_as_in_a_simulation_second_by_second(start, work, failures, saved_every, restart):
    found = finish_time(start, work, failures, saved_every=saved_every, restart=restart)
    assert found == step_by_step(start, work, failures, saved_every, restart)


@given(st.integers(0, 50), st.integers(1, 60), TIMES, st.integers(1, 20), st.integers(0, 10), st.integers(0, 20))
def test_resuming_and_starting_earlier_never_end_later(start, work, failures, saved_every, restart, later):
    def ends(begin: int, saved: int | None) -> float:
        return finish_time(begin, work, failures, saved_every=saved, restart=restart)

    assert start + work <= ends(start, saved_every) <= ends(start, None)
    for saved in (saved_every, None):
        assert ends(start, saved) <= ends(start + later, saved)


@given(
    st.lists(st.integers(1, 3 * 86_400), min_size=1, max_size=10),
    st.integers(1, 20),
    st.sampled_from([0.5, 1.0, 4.0]),
    st.integers(0, 1000),
)
def test_resuming_never_makes_a_schedule_longer(lengths, gpus, per_day, seed):
    tasks = [Task(str(place), float(length), saved_every=1024.0) for place, length in enumerate(lengths)]
    schedule = make_schedule(tasks, gpus)
    options = {"per_day": per_day, "trials": 3, "seed": seed}
    resumed = simulate_failures(schedule, resume=True, **options)
    again = simulate_failures(schedule, resume=False, **options)
    for one, other in zip(resumed, again, strict=True):
        assert schedule.makespan <= one.makespan * (1 + 1e-12)
        assert one.makespan <= other.makespan * (1 + 1e-12)
        assert one.lost >= -1e-6


def expected(work: float, rate: float, restart: float) -> float:
    """Return the mean time of work that a failure makes begin again, if failures come at a constant rate.

    While the node is down, more failures may come, each of which delays the restart: this adds the mean time until none
    comes for `restart` seconds, (exp(rate restart) - 1) / rate, per interruption.
    """
    down = math.expm1(rate * restart) / rate
    return (1 / rate + down) * math.expm1(rate * work)


@pytest.mark.parametrize("saved_every", [None, DAY / 8])
@pytest.mark.parametrize("restart", [0.0, DAY / 10])
def test_the_mean_of_one_run_is_that_of_the_closed_form(saved_every, restart):
    trials = 4_000
    schedule = make_schedule([Task("run", DAY, saved_every=DAY / 8)], slots=1)
    found = simulate_failures(
        schedule, per_day=1.5, resume=saved_every is not None, trials=trials, seed=1, restart=restart
    )
    mean = statistics.fmean(trial.makespan for trial in found)
    error = statistics.stdev(trial.makespan for trial in found) / trials**0.5
    parts = 1 if saved_every is None else 8
    assert mean == pytest.approx(parts * expected(DAY / parts, 1.5 / DAY, restart), abs=4 * error)
    assert statistics.fmean(trial.lost for trial in found) == pytest.approx(mean - DAY)


def test_a_failure_hits_all_gpus_of_its_node_and_no_others():
    gpus = 2 * GPUS_PER_NODE
    schedule = make_schedule([Task(str(gpu), DAY, saved_every=DAY) for gpu in range(gpus)], gpus)
    lost = {trial.lost > 0 for trial in simulate_failures(schedule, per_day=1.0, resume=False, trials=50)}
    assert lost == {True, False}
    single = [
        trial
        for trial in simulate_failures(schedule, per_day=0.01, resume=False, trials=500, restart=0.0)
        if 0 < trial.lost < DAY * GPUS_PER_NODE
    ]
    assert single
    for trial in single:  # all runs of the node lose the same
        assert trial.lost == pytest.approx(GPUS_PER_NODE * (trial.makespan - DAY))


def test_a_run_on_several_nodes_stops_if_one_of_them_fails():
    """It is the same as one node with as many failures."""
    trials, options = 3_000, {"resume": False, "restart": 0.0}
    schedule = make_schedule([Task("run", DAY, saved_every=DAY)], 1)
    found = simulate_failures(schedule, per_day=1.0, trials=trials, gpus_per_run=3 * GPUS_PER_NODE, **options)
    mean = statistics.fmean(trial.makespan for trial in found)
    error = statistics.stdev(trial.makespan for trial in found) / trials**0.5
    assert mean == pytest.approx(expected(DAY, 1 / DAY, 0.0), abs=4 * error)
    assert statistics.fmean(trial.lost for trial in found) == pytest.approx(24 * (mean - DAY))


@pytest.mark.parametrize(
    ("slot", "gpus", "nodes"), [(0, 1, [0]), (7, 1, [0]), (8, 1, [1]), (1, 8, [1]), (1, 16, [2, 3])]
)
def test_nodes_of_a_slot(slot, gpus, nodes):
    assert list(range(5))[_nodes(slot, gpus)] == nodes


def test_a_run_that_waits_for_another_starts_after_its_delays():
    tasks = [Task("source", DAY, DAY), Task("tuned", DAY, DAY, after="source")]
    schedule = make_schedule(tasks, 9)  # on two nodes, or one
    for trial in simulate_failures(schedule, per_day=2.0, resume=False, trials=20):
        assert trial.makespan == pytest.approx(2 * DAY + trial.lost)


def test_seeds_decide():
    schedule = make_schedule([Task("run", 5 * DAY, saved_every=1000.0)], 8)
    first, again, other = (
        simulate_failures(schedule, per_day=1.0, resume=True, trials=5, seed=seed) for seed in (0, 0, 1)
    )
    assert first == again != other
    assert len(set(first)) > 1


def test_without_failures_nothing_is_lost():
    schedule = make_schedule([Task("run", DAY, saved_every=1000.0)], 8)
    (trial,) = simulate_failures(schedule, per_day=0.0, resume=False, trials=1)
    assert (trial.makespan, trial.lost) == (DAY, 0.0)


def test_a_hopeless_run_is_given_up():
    schedule = make_schedule([Task("run", 30 * DAY, saved_every=1000.0)], 1)
    (trial,) = simulate_failures(schedule, per_day=2.0, resume=False, trials=1)
    assert math.isinf(trial.makespan)
    (trial,) = simulate_failures(schedule, per_day=2.0, resume=True, trials=1)
    assert 30 * DAY < trial.makespan < 40 * DAY
