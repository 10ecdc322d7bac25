from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numpy")
pytest.importorskip("scipy")
import numpy as np
from scipy import stats

from liere.evaluation import intervals
from liere.evaluation.intervals import accuracy_interval, mean_interval


def slow_bootstrap(values: list[float], resamples: int = 4_000) -> tuple[float, float]:
    """Resample the values with replacement many times, and return the quantiles of their means."""
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
        assert intervals.RESAMPLES == 1_000  # as in the paper
        assert intervals.CONFIDENCE == 0.95

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
        edge = 0.025 ** (1 / count)  # the beta quantile has a closed form here
        right, wrong = accuracy_interval([1] * count), accuracy_interval([0] * count)
        assert (right.value, right.high, right.method) == (1.0, 1.0, "exact binomial")
        assert (wrong.value, wrong.low, wrong.method) == (0.0, 0.0, "exact binomial")
        assert right.low == pytest.approx(edge)
        assert wrong.high == pytest.approx(1 - edge)

    @given(right=st.integers(1, 400), wrong=st.integers(1, 400))
    def test_in_between_it_is_jeffreys(self, right, wrong):
        proportion = pytest.importorskip("statsmodels.stats.proportion")
        found = accuracy_interval([1] * right + [0] * wrong)
        low, high = proportion.proportion_confint(right, right + wrong, method="jeffreys")
        assert (found.low, found.high) == pytest.approx((low, high), rel=1e-9)
        assert found.low < found.value == right / (right + wrong) < found.high
        assert found.method == "Jeffreys"

    @pytest.mark.parametrize("count", [1, 2, 7, 300])
    def test_at_0_and_100_percent_it_is_statsmodels_exact_one(self, count):
        proportion = pytest.importorskip("statsmodels.stats.proportion")
        for right in (0, count):
            found = accuracy_interval([right // count] * count)
            expected = proportion.proportion_confint(right, count, method="beta")
            assert (found.low, found.high) == pytest.approx(expected, rel=1e-9)
            assert found.low < found.high

    @pytest.mark.parametrize("count", [1, 2, 10, 1_000])
    def test_one_more_right_answer_never_lowers_an_end(self, count):
        found = [accuracy_interval([1] * right + [0] * (count - right)) for right in range(count + 1)]
        for end in ("low", "high"):
            ends = [getattr(interval, end) for interval in found]
            assert ends == sorted(ends)

    @pytest.mark.parametrize("kind", [list, np.array, lambda v: np.array(v, bool), lambda v: np.array(v, np.uint8)])
    def test_answers_may_be_of_any_type(self, kind):
        assert accuracy_interval(kind([1, 0, 1, 1])) == accuracy_interval([1.0, 0.0, 1.0, 1.0])

    @pytest.mark.parametrize("right", [300, 500, 900])
    def test_it_is_about_the_papers_bootstrap(self, right):
        found, paper = (f([1] * right + [0] * (1_000 - right)) for f in (accuracy_interval, mean_interval))
        assert (found.low, found.high) == pytest.approx((paper.low, paper.high), abs=0.004)

    def test_shares_over_several_models_are_welcome(self):
        found = accuracy_interval([1.0, 2 / 3, 1 / 3, 1.0] * 30)
        assert found.value == pytest.approx(0.75)
        assert found.method == "bootstrap"
        assert accuracy_interval([0.5, 0.5, 0.5]).method == "constant"


def held(truth: float, correct: np.ndarray) -> bool:
    found = accuracy_interval(correct)
    return found.low <= truth <= found.high


def simulated_coverage(truth: float, count: int, evaluations: int = 10_000) -> float:
    """Return the share of intervals that contain the true accuracy of simulated models."""
    dice = np.random.default_rng([count, round(1e6 * truth)])
    right = dice.binomial(count, truth, size=evaluations)
    numbers, times = np.unique(right, return_counts=True)  # the same number of right answers gives the same interval
    return sum(n for number, n in zip(numbers, times, strict=True) if held(truth, np.arange(count) < number)) / len(
        right
    )


def exact_coverage(count: int, truths: np.ndarray) -> np.ndarray:
    """Return, for each true accuracy, the total probability of the outcomes whose interval contains it."""
    found = [accuracy_interval(np.arange(count) < right) for right in range(count + 1)]
    # Ends increase with the number of right answers, so the outcomes that contain a value are contiguous.
    first = np.searchsorted([interval.high for interval in found], truths, "left")
    last = np.searchsorted([interval.low for interval in found], truths, "right") - 1
    return stats.binom.cdf(last, count, truths) - stats.binom.cdf(first - 1, count, truths)


class TestCoverage:
    TRUTHS = np.linspace(0.3, 0.9, 6_001)

    @pytest.mark.parametrize("truth", [0.3, 0.5, 0.7, 0.9])
    def test_95_of_100_evaluations_hold_the_truth(self, truth):
        assert 0.94 <= simulated_coverage(truth, 1_000) <= 0.96

    @pytest.mark.parametrize(
        ("count", "low", "high"), [(100, 0.926, 0.964), (500, 0.941, 0.957), (1_000, 0.944, 0.956)]
    )
    def test_so_it_is_for_every_truth(self, count, low, high):
        held = exact_coverage(count, self.TRUTHS)
        assert low <= held.min()
        assert held.max() <= high
        assert held.mean() == pytest.approx(0.95, abs=0.001)

    @pytest.mark.slow
    @pytest.mark.parametrize(("count", "low", "high"), [(2_000, 0.945, 0.954), (10_000, 0.948, 0.952)])
    def test_so_it_is_for_every_truth_and_many_examples(self, count, low, high):
        held = exact_coverage(count, self.TRUTHS)
        assert low <= held.min()
        assert held.max() <= high

    @pytest.mark.slow
    @pytest.mark.parametrize("count", [500, 1_000, 2_000, 10_000])
    @pytest.mark.parametrize("truth", np.round(np.arange(0.3, 0.91, 0.05), 2).tolist())
    def test_95_of_100_evaluations_of_any_size_hold_the_truth(self, truth, count):
        assert 0.94 <= simulated_coverage(truth, count) <= 0.96

    def test_exact_and_simulated_coverage_agree(self):
        (exact,) = exact_coverage(50, np.array([0.8]))
        assert simulated_coverage(0.8, 50) == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 10_000))

    def test_the_order_of_answers_does_not_matter(self):
        correct = np.random.default_rng(0).random(1_000) < 0.7
        assert accuracy_interval(correct) == accuracy_interval(np.sort(correct))

    @pytest.mark.slow
    def test_so_it_is_for_answers_drawn_one_by_one(self):
        dice = np.random.default_rng(4)
        assert 0.94 <= np.mean([held(0.7, dice.random(1_000) < 0.7) for _ in range(10_000)]) <= 0.96

    @staticmethod
    def skewed_coverage(samples: int) -> float:
        dice = np.random.default_rng(0)
        found = [mean_interval(dice.lognormal(size=1_000), seed=seed) for seed in range(samples)]
        return sum(interval.low <= math.exp(0.5) <= interval.high for interval in found) / samples

    def test_skewed_losses_are_held_about_as_often(self):
        assert 0.90 <= self.skewed_coverage(80) <= 0.99

    @pytest.mark.slow
    def test_skewed_losses_are_held_in_93_to_97_of_100(self):
        assert 0.93 <= self.skewed_coverage(2_000) <= 0.97
