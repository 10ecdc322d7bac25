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

from liere.evaluation import resampling
from liere.evaluation.intervals import accuracy_interval
from liere.evaluation.paired_tests import paired_bootstrap, paired_difference, paired_z_test


def sign_test(wins: int, losses: int) -> float:
    """Return the share of outcomes of fair coin flips that are at least as lopsided."""
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
        with pytest.raises(ValueError, match="first has 3 values and second has 2"):
            paired_difference([1, 0, 1], [1, 0])

    @given(both=st.integers(0, 20), first=st.integers(0, 30), second=st.integers(0, 30), neither=st.integers(1, 20))
    def test_p_is_statsmodels_mcnemar(self, both, first, second, neither):
        tables = pytest.importorskip("statsmodels.stats.contingency_tables")
        one = [1] * both + [1] * first + [0] * second + [0] * neither
        other = [1] * both + [0] * first + [1] * second + [0] * neither
        expected = tables.mcnemar([[both, first], [second, neither]], exact=True).pvalue
        assert paired_difference(one, other).p == pytest.approx(min(1.0, float(expected)))

    @pytest.mark.parametrize(
        ("first", "second", "p"),
        [
            # In floating point, the sum of these differences is not quite 0, ...
            ([2 / 3, 1, 2 / 3, 2 / 3, 0, 1 / 3], [1 / 3, 2 / 3, 1 / 3, 1, 1 / 3, 2 / 3], 1.0),
            # ... and these are not quite equal.
            ([1.0, 2 / 3, 1 / 3] * 10, [2 / 3, 1 / 3, 0.0] * 10, 2 / 2**30),
        ],
    )
    def test_thirds_are_not_rounded_apart(self, first, second, p):
        assert paired_difference(first, second).p == pytest.approx(p)

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
        with pytest.raises(ValueError, match="first has 2 values and second has 3"):
            paired_z_test([1, 1], [0, 0, 1])
        with pytest.raises(ValueError, match="finite"):
            paired_z_test([1, math.nan], [0, 0])


def mostly_alike(seed: int, count: int = 400) -> np.ndarray:
    """Return right and wrong answers of two models that often agree."""
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
        # A 2.5 % quantile of 5,000 normal values has a standard deviation of 0.038 times theirs; answers are integers.
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
        assert peak < 60e6  # all draws at once take 80 MB, and their values the same again

    def test_parts_are_joined_without_a_gap(self, monkeypatch):
        whole = paired_bootstrap(*LOSSES, resamples=1_001)
        monkeypatch.setattr(resampling, "DRAWS_AT_ONCE", 3 * LOSSES.shape[1])
        assert paired_bootstrap(*LOSSES, resamples=1_001) == whole
