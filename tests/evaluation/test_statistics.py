from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numpy")
pytest.importorskip("scipy")
import numpy as np

from liere.evaluation import statistics
from liere.evaluation.statistics import accuracy_interval, mean_interval, paired_difference


def slow_bootstrap(values: list[float], resamples: int = 4_000) -> tuple[float, float]:
    """Draw as many values with replacement, again and again, and take the quantiles of their means."""
    dice, values = np.random.default_rng(12345), np.asarray(values)
    means = [dice.choice(values, len(values)).mean() for _ in range(resamples)]
    return np.quantile(means, 0.025), np.quantile(means, 0.975)


class TestMean:
    @pytest.mark.parametrize(
        "values",
        [
            [1.0] * 140 + [0.0] * 60,
            [0.0, 1 / 3, 2 / 3, 1.0] * 25,
            list(np.random.default_rng(0).exponential(size=300)),
            list(np.random.default_rng(1).normal(size=37)),
        ],
    )
    def test_the_interval_is_about_that_of_a_plain_bootstrap(self, values):
        found, (low, high) = mean_interval(values), slow_bootstrap(values)
        # The 2.5 % quantile of 1,000 normal values has a standard deviation of 0.085 times theirs.
        tolerance = 4 * 0.1 * np.std(values) / math.sqrt(len(values))
        assert found.value == pytest.approx(np.mean(values))
        assert found.low == pytest.approx(low, abs=tolerance)
        assert found.high == pytest.approx(high, abs=tolerance)
        assert found.method == "bootstrap"

    def test_more_examples_make_it_narrower_as_their_root(self):
        few, many = (mean_interval([0.0, 1.0] * n) for n in (50, 5_000))
        assert (few.high - few.low) / (many.high - many.low) == pytest.approx(10, rel=0.2)

    def test_it_repeats_itself_and_seeds_differ_a_little(self):
        values = [0.0, 1.0, 1.0] * 40
        assert mean_interval(values) == mean_interval(values, seed=0)
        assert mean_interval(values) != mean_interval(values, seed=1)
        assert mean_interval(values).low == pytest.approx(mean_interval(values, seed=1).low, abs=0.03)

    def test_a_thousand_resamples_are_drawn(self):
        assert statistics.RESAMPLES == 1_000  # as in the paper
        assert statistics.CONFIDENCE == 0.95

    @given(value=st.floats(-1e6, 1e6), count=st.integers(1, 20))
    def test_values_that_are_all_the_same_have_an_interval_of_one_point(self, value, count):
        found = mean_interval([value] * count)
        assert found.method == "constant"
        assert found.low == found.value == found.high == pytest.approx(value)

    @given(values=st.lists(st.floats(0, 1), min_size=2, max_size=50))
    def test_the_mean_is_inside_and_the_ends_are_finite_numbers(self, values):
        found = mean_interval(values)
        assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
        assert found.as_dict() == {
            "value": found.value,
            "low": found.low,
            "high": found.high,
            "method": found.method,
        }
        assert all(type(found.as_dict()[key]) is float for key in ("value", "low", "high"))

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ([], "at least one value"),
            (np.ones((2, 2)), r"shape \(2, 2\)"),
            ([1.0, float("nan")], "finite"),
            ([1.0, float("inf")], "finite"),
        ],
    )
    def test_what_has_no_mean_is_refused(self, values, message, no_shape_checks):
        for function in (mean_interval, accuracy_interval):
            with pytest.raises(ValueError, match=message):
                function(values)


class TestAccuracy:
    @pytest.mark.parametrize("count", [1, 10, 1_000, 10_000])
    def test_at_0_and_100_percent_it_is_clopper_and_pearsons(self, count):
        edge = 0.025 ** (1 / count)  # the beta quantile, which has a formula there
        right, wrong = accuracy_interval([1] * count), accuracy_interval([0] * count)
        assert (right.value, right.high, right.method) == (1.0, 1.0, "exact binomial")
        assert (wrong.value, wrong.low, wrong.method) == (0.0, 0.0, "exact binomial")
        assert right.low == pytest.approx(edge)
        assert wrong.high == pytest.approx(1 - edge)

    def test_in_between_it_is_the_bootstraps(self):
        correct = [1] * 90 + [0] * 10
        assert accuracy_interval(correct, seed=3) == mean_interval(correct, seed=3)

    def test_shares_over_several_models_are_welcome(self):
        found = accuracy_interval([1.0, 2 / 3, 1 / 3, 1.0] * 30)
        assert found.value == pytest.approx(0.75)
        assert found.method == "bootstrap"
        assert accuracy_interval([0.5, 0.5, 0.5]).method == "constant"


def sign_test(wins: int, losses: int) -> float:
    """Count, among all ways in which so many coins may fall, those that are as lopsided."""
    n = wins + losses
    return sum(math.comb(n, k) for k in range(n + 1) if abs(2 * k - n) >= abs(wins - losses)) / 2**n


class TestPairs:
    @given(both=st.integers(0, 20), first=st.integers(0, 30), second=st.integers(0, 30), neither=st.integers(1, 20))
    def test_p_is_mcnemars(self, both, first, second, neither):
        one = [1] * both + [1] * first + [0] * second + [0] * neither
        other = [1] * both + [0] * first + [1] * second + [0] * neither
        found = paired_difference(one, other)
        assert found.p == pytest.approx(sign_test(first, second))
        assert found.interval.value == pytest.approx((first - second) / len(one))
        assert found.interval.low <= found.interval.value + 1e-12
        assert found.interval.value <= found.interval.high + 1e-12

    def test_pairs_tell_more_than_two_intervals(self):
        one, other = [1] * 60 + [0] * 40, [1] * 50 + [0] * 50
        assert accuracy_interval(one).low < accuracy_interval(other).high
        found = paired_difference(one, other)
        assert found.p == pytest.approx(2 / 2**10)
        assert found.interval.low > 0

    def test_the_same_answers_are_no_difference(self):
        found = paired_difference([1, 0, 1], [1, 0, 1])
        assert found.p == 1
        assert (found.interval.low, found.interval.high) == (0, 0)

    def test_exchanging_both_changes_the_sign_only(self):
        one, other = [1, 1, 1, 0, 1, 0] * 9, [0, 1, 0, 1, 1, 0] * 9
        there, back = paired_difference(one, other), paired_difference(other, one)
        assert there.p == back.p
        assert there.interval.value == pytest.approx(-back.interval.value)

    def test_shares_over_several_models_count_by_their_sign(self):
        found = paired_difference([1.0, 2 / 3, 1 / 3, 0.5], [2 / 3, 1 / 3, 2 / 3, 0.5])
        assert found.p == pytest.approx(sign_test(2, 1))

    def test_other_numbers_of_examples_are_refused(self):
        with pytest.raises(ValueError, match="first has 3 values, second has 2"):
            paired_difference([1, 0, 1], [1, 0])
