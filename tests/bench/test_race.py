from __future__ import annotations

import pytest

from liere.bench.race import MAX_CALLS, Race, race, spread


@pytest.fixture(autouse=True)
def no_collection(monkeypatch):
    """Leave out garbage collection, which is slow among the objects of a test run."""
    monkeypatch.setattr("gc.collect", lambda: 0)


class FakeClock:
    """A clock that advances only while candidates run."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[str] = []

    def __call__(self) -> float:
        return self.now

    def contestant(self, name: str, *seconds: float):
        """Take the given times, call by call, then repeat the last one."""
        times = list(seconds)

        def work() -> None:
            self.calls.append(name)
            self.now += times.pop(0) if len(times) > 1 else times[0]

        return work


def test_every_round_has_every_contestant_once_in_changing_order():
    clock = FakeClock()
    names = ["a", "b", "c", "d"]
    race({name: clock.contestant(name, 1.0) for name in names}, rounds=6, clock=clock)
    assert clock.calls[:4] == names  # warm-up
    rounds = [tuple(clock.calls[start : start + 4]) for start in range(4, 28, 4)]
    assert len(clock.calls) == 28
    assert all(sorted(order) == names for order in rounds)
    assert len(set(rounds)) > 1


def test_the_order_is_the_same_at_every_run():
    orders = []
    for _ in range(2):
        clock = FakeClock()
        race({name: clock.contestant(name, 1.0) for name in "abcde"}, rounds=3, clock=clock)
        orders.append(clock.calls)
    assert orders[0] == orders[1]


def test_the_warm_up_does_not_count():
    clock = FakeClock()
    result = race({"slow at first": clock.contestant("x", 100.0, 1.0)}, rounds=3, clock=clock)
    assert result.seconds == {"slow at first": [1.0, 1.0, 1.0]}


def test_short_turns_are_repeated_and_reported_by_the_call():
    clock = FakeClock()
    contestants = {"short": clock.contestant("short", 0.004), "tiny": clock.contestant("tiny", 1e-7)}
    result = race(contestants, rounds=2, clock=clock)
    assert clock.calls.count("short") == 1 + 2 * 5
    assert clock.calls.count("tiny") == 1 + 2 * MAX_CALLS
    assert result.times("short").median == pytest.approx(0.004)


def test_comparisons_are_made_round_by_round():
    """The machine halves its speed from round to round; the ratio within a round is always 3."""
    clock = FakeClock()
    contestants = {"base": clock.contestant("base", 1, 1, 2, 4), "other": clock.contestant("other", 1, 3, 6, 12)}
    result = race(contestants, rounds=3, clock=clock)
    assert result.baseline == "base"
    assert result.times("base") == (1.5, 2, 3)
    assert result.ratio("other") == (3, 3, 3)
    assert result.speedup("other") == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert result.excess("other") == (3, 4, 6)


def test_the_median_of_ratios_is_not_the_ratio_of_medians():
    result = Race("base", {"base": [1.0, 2.0, 10.0], "other": [2.0, 1.0, 40.0]})
    assert result.ratio("other").median == 2
    assert result.times("other").median / result.times("base").median == 1


def test_spread_of_one_value_and_as_json():
    assert spread([2.0]) == (2.0, 2.0, 2.0)
    assert spread([1.0, 2.0, 3.0]).as_dict() == {"median": 2.0, "quartiles": [1.5, 2.5]}


def test_a_race_is_watched_from_the_warm_up_to_the_last_round():
    seen = []
    race({"a": lambda: None}, rounds=2, name="this", watch=lambda *news: seen.append(news))
    assert seen == [("this", 0, 2), ("this", 1, 2), ("this", 2, 2)]


@pytest.mark.parametrize(
    ("contestants", "rounds", "message"),
    [({}, 1, "contestants is empty"), ({"a": lambda: None}, 0, "rounds must be at least 1, got 0")],
)
def test_bad_arguments(contestants, rounds, message):
    with pytest.raises(ValueError, match=message):
        race(contestants, rounds)


def test_contestants_can_be_compared_with_any_other():
    result = Race("a", {"a": [1.0, 1.0], "b": [2.0, 4.0], "c": [3.0, 6.0]})
    assert result.ratio("c").median == 4.5
    assert result.ratio("c", to="b").median == 1.5
