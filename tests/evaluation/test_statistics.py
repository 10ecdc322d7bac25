from __future__ import annotations

import math
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numpy")
pytest.importorskip("scipy")
import numpy as np
from scipy import stats

from liere.evaluation import statistics
from liere.evaluation.statistics import (
    accuracy_interval,
    mean_interval,
    paired_bootstrap,
    paired_difference,
    paired_z_test,
)


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
    """Evaluate models that are right with a known probability, and count the intervals that hold it."""
    dice = np.random.default_rng([count, round(1e6 * truth)])
    right = dice.binomial(count, truth, size=evaluations)
    numbers, times = np.unique(right, return_counts=True)  # as many right answers, the same interval
    return sum(n for number, n in zip(numbers, times, strict=True) if held(truth, np.arange(count) < number)) / len(
        right
    )


def exact_coverage(count: int, truths: np.ndarray) -> np.ndarray:
    """Add up, for each truth, how probable the numbers of right answers are whose intervals hold it."""
    found = [accuracy_interval(np.arange(count) < right) for right in range(count + 1)]
    # Ends rise with the number of right answers, so those that hold a truth are neighbours.
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

    @given(both=st.integers(0, 20), first=st.integers(0, 30), second=st.integers(0, 30), neither=st.integers(1, 20))
    def test_p_is_statsmodels_mcnemar(self, both, first, second, neither):
        tables = pytest.importorskip("statsmodels.stats.contingency_tables")
        one = [1] * both + [1] * first + [0] * second + [0] * neither
        other = [1] * both + [0] * first + [1] * second + [0] * neither
        expected = tables.mcnemar([[both, first], [second, neither]], exact=True).pvalue
        assert paired_difference(one, other).p == pytest.approx(min(1.0, float(expected)))

    def test_few_shares_are_flipped_in_all_ways(self):
        first, second = np.random.default_rng(5).choice([0, 1 / 3, 2 / 3, 1], size=(2, 11))
        signs = np.array(np.meshgrid(*[[-1, 1]] * 11)).reshape(11, -1)
        sums, seen = signs.T @ (first - second), (first - second).sum()
        assert paired_difference(first, second).p == pytest.approx((np.abs(sums) >= abs(seen) - 1e-9).mean())

    def test_many_shares_are_tested_as_scipy_does(self):
        dice = np.random.default_rng(6)
        first, second = dice.binomial(3, 0.6, 200) / 3, dice.binomial(3, 0.52, 200) / 3
        expected = stats.permutation_test(
            (first, second),
            lambda one, other, axis: np.mean(one - other, axis=axis),
            permutation_type="samples",
            n_resamples=20_000,
            batch=1_000,
            vectorized=True,
            rng=np.random.default_rng(7),
        ).pvalue
        assert 0.001 < expected < 0.5
        assert paired_difference(first, second).p == pytest.approx(expected, abs=5 * math.sqrt(expected / 10_000))


class TestZ:
    @given(
        pairs=st.lists(
            st.tuples(st.floats(-9, 9, width=16), st.floats(-9, 9, width=16)), min_size=2, max_size=60
        ).filter(lambda pairs: np.ptp([a - b for a, b in pairs]) > 0)
    )
    def test_it_is_statsmodels_test_of_differences(self, pairs):
        weightstats = pytest.importorskip("statsmodels.stats.weightstats")
        first, second = map(list, zip(*pairs, strict=True))
        found, differences = paired_z_test(first, second), np.subtract(first, second)
        z, p = weightstats.ztest(differences)
        assert (found.z, found.p) == pytest.approx((z, p), abs=1e-12)
        assert found.difference == pytest.approx(differences.mean())
        expected = weightstats.DescrStatsW(differences).zconfint_mean(alpha=0.05)
        assert (found.low, found.high) == pytest.approx(expected)

    def test_by_hand(self):
        found = paired_z_test([3, 5, 7, 9], [2, 2, 6, 6])  # differences 1, 3, 1, 3: mean 2, variance 4 / 3
        assert found.difference == 2
        assert found.z == pytest.approx(2 / math.sqrt(4 / 3 / 4))
        assert found.high - 2 == pytest.approx(1.959964 * math.sqrt(1 / 3), rel=1e-6)
        assert found.p == pytest.approx(math.erfc(found.z / math.sqrt(2)))

    @pytest.mark.parametrize(
        ("z", "p", "difference", "low", "high"),
        [(-1.81, 0.070, -0.0118, -0.0246, 0.0010), (-3.85, 0.00012, -0.0255, -0.0385, -0.0125)],
    )
    def test_the_numbers_of_the_papers_table_belong_together(self, z, p, difference, low, high):
        count = 10_000
        spread = difference / z * math.sqrt(count - 1)
        found = paired_z_test([difference + spread, difference - spread] * (count // 2), [0] * count)
        assert found.z == pytest.approx(z)
        assert found.p == pytest.approx(p, rel=0.05)
        assert (found.difference, found.low, found.high) == pytest.approx((difference, low, high), abs=6e-5)

    def test_differences_that_are_all_the_same_give_numbers(self):
        same, better, worse = (paired_z_test([0.5 + d] * 4, [0.5] * 4) for d in (0, 0.25, -0.25))
        assert (same.z, same.p, same.low, same.difference, same.high) == (0, 1, 0, 0, 0)
        assert (better.z, better.p, better.low, better.high) == (math.inf, 0, 0.25, 0.25)
        assert (worse.z, worse.p) == (-math.inf, 0)

    def test_what_cannot_be_tested_is_refused(self):
        with pytest.raises(ValueError, match="at least two examples"):
            paired_z_test([1], [0])
        with pytest.raises(ValueError, match="first has 2 values, second has 3"):
            paired_z_test([1, 1], [0, 0, 1])
        with pytest.raises(ValueError, match="finite"):
            paired_z_test([1, math.nan], [0, 0])


def mostly_alike(seed: int, count: int = 400) -> np.ndarray:
    """Return right and wrong answers of two, the second of whom often answers as the first does."""
    own, other, alike = np.random.default_rng(seed).random((3, count))
    return np.array([own < 0.7, np.where(alike < 0.8, own < 0.7, other < 0.5)], dtype=float)


RIGHT_AND_WRONG = mostly_alike(9)
SHARES = np.random.default_rng(9).binomial(3, [[0.7], [0.66]], (2, 300)) / 3
LOSSES = np.random.default_rng(14).lognormal([[0.0], [0.1]], 1, (2, 250))


class TestPairedBootstrap:
    @pytest.mark.parametrize("pairs", [RIGHT_AND_WRONG, SHARES, LOSSES], ids=["right", "shares", "losses"])
    def test_it_is_that_of_a_plain_loop(self, pairs):
        differences, dice, count = pairs[0] - pairs[1], np.random.default_rng(77), pairs.shape[1]
        means = np.array([differences[dice.integers(count, size=count)].mean() for _ in range(5_000)])
        found = paired_bootstrap(*pairs)
        # A 2.5 % quantile of 5,000 normal values has a standard deviation of 0.038 times theirs; answers are whole.
        tolerance = 0.15 * differences.std() / math.sqrt(count) + 1.01 / count
        assert found.interval.value == pytest.approx(differences.mean())
        assert found.interval.low == pytest.approx(np.quantile(means, 0.025), abs=tolerance)
        assert found.interval.high == pytest.approx(np.quantile(means, 0.975), abs=tolerance)
        p = 2 * min((means <= 1e-12).mean(), (means >= -1e-12).mean())
        assert 0.001 < p < 0.9
        assert found.p == pytest.approx(p, abs=6 * math.sqrt(2 * p / 5_000))

    @pytest.mark.parametrize("pairs", [RIGHT_AND_WRONG, SHARES, LOSSES], ids=["right", "shares", "losses"])
    def test_it_is_scipys(self, pairs):
        difference = pairs[0] - pairs[1]
        expected = stats.bootstrap(
            (difference,), np.mean, n_resamples=10_000, batch=500, method="percentile", rng=np.random.default_rng(3)
        ).confidence_interval
        found, count = paired_bootstrap(*pairs).interval, len(difference)
        tolerance = 0.15 * difference.std() / math.sqrt(count) + 1.01 / count
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=tolerance)

    @pytest.mark.parametrize("seed", range(12))
    def test_p_is_small_where_the_interval_leaves_zero_out(self, seed):
        dice = np.random.default_rng(seed)
        first, second = dice.random((2, 300)) < [[0.7], [0.7 - 0.012 * seed]]
        found = paired_bootstrap(first, second, seed=seed)
        holds_zero = found.interval.low <= 0 <= found.interval.high
        assert holds_zero == (found.p >= 0.05) or 0.045 < found.p < 0.06  # ties at 0 count for both sides

    @given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=30), st.integers(0, 5))
    def test_the_same_answers_are_no_difference(self, answers, seed):
        found = paired_bootstrap(answers, answers, seed=seed, resamples=99)
        assert found.p == 1
        assert (found.interval.low, found.interval.high, found.interval.method) == (0, 0, "constant")

    @given(
        values=st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=40),
        resamples=st.integers(1, 50),
    )
    def test_p_is_a_probability_and_the_ends_are_in_order(self, values, resamples):
        found = paired_bootstrap(values, [0.0] * len(values), resamples=resamples)
        assert 0 < found.p <= 1
        assert -1 <= found.interval.low <= found.interval.high <= 1

    def test_exchanging_both_changes_the_sign_only(self):
        there, back = paired_bootstrap(*LOSSES), paired_bootstrap(*LOSSES[::-1])
        assert there.p == back.p
        assert (there.interval.low, there.interval.high) == pytest.approx((-back.interval.high, -back.interval.low))

    def test_it_repeats_itself_and_seeds_differ(self):
        assert paired_bootstrap(*LOSSES) == paired_bootstrap(*LOSSES, seed=0) != paired_bootstrap(*LOSSES, seed=1)

    def test_memory_has_a_bound(self):
        first = np.random.default_rng(0).random(100_000)
        tracemalloc.start()
        try:
            paired_bootstrap(first, np.zeros_like(first), resamples=100)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 60e6  # all draws at once are 80 MB, and their values as many again

    def test_parts_are_joined_without_a_gap(self, monkeypatch):
        whole = paired_bootstrap(*LOSSES, resamples=1_001)
        monkeypatch.setattr(statistics, "DRAWS_AT_ONCE", 3 * LOSSES.shape[1])
        assert paired_bootstrap(*LOSSES, resamples=1_001) == whole
