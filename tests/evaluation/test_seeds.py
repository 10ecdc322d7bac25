from __future__ import annotations

import itertools

import pytest

pytest.importorskip("tests.training.requirements")

import numpy as np
from scipy import stats

from liere.evaluation.seeds import compare_seeds, seed_interval, seed_spread


def by_seed(*values: float) -> dict[int, float]:
    return dict(enumerate(values))


class TestInterval:
    def test_it_is_scipy_s_t_interval(self):
        values = [0.61, 0.64, 0.70, 0.66]
        low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
        found = seed_interval(values)
        assert (found.low, found.high) == pytest.approx((low, high))
        assert found.method == "t over seeds"

    def test_it_is_clipped_to_what_an_accuracy_can_be(self):
        found = seed_interval([0.286, 0.599, 0.841])
        assert (found.low, found.high) == (0.0, 1.0)
        assert seed_interval([2.0, 5.0, 9.0], most=float("inf")).high > 9

    def test_it_holds_the_mean_of_all_seeds_in_95_of_100_comparisons(self):
        dice = np.random.default_rng(0)
        for count in (3, 5, 10):
            draws = dice.normal(0.6, 0.05, (4000, count))
            held = [found.low <= 0.6 <= found.high for found in map(seed_interval, draws)]
            assert 0.94 < np.mean(held) < 0.96

    def test_equal_seeds_and_too_few(self):
        assert seed_interval([1.0, 1.0]).method == "constant"
        with pytest.raises(ValueError, match="needs at least two seeds, got 1"):
            seed_interval([0.5])
        assert seed_spread([0.5]).low is None
        assert seed_spread([0.5, 0.7, 0.3]).as_dict() | {"low": 0, "high": 0} == {
            "mean": pytest.approx(0.5),
            "least": 0.3,
            "most": 0.7,
            "low": 0,
            "high": 0,
            "seeds": 3,
        }


class TestComparison:
    def test_common_seeds_are_paired(self):
        first, second = [0.9, 0.7, 0.8], [0.85, 0.6, 0.77]
        found = compare_seeds(by_seed(*first), by_seed(*second))
        assert found.p == pytest.approx(stats.ttest_rel(first, second).pvalue)
        interval = stats.ttest_rel(first, second).confidence_interval(0.95)
        assert (found.low, found.high) == pytest.approx(interval)
        assert (found.test, found.ahead, found.behind, found.pairs) == ("paired t test", 3, 0, 3)

    def test_seeds_that_only_one_has_do_not_count(self):
        first, second = {0: 0.9, 1: 0.7, 5: 0.0}, {1: 0.6, 0: 0.85, 9: 1.0}
        found = compare_seeds(first, second)
        assert found.difference == pytest.approx(0.075)
        assert found.pairs == 2

    def test_seeds_that_are_not_common_have_welch_s_test(self):
        first, second = [0.9, 0.7, 0.8], [0.5, 0.6, 0.55]
        found = compare_seeds(by_seed(*first), dict(zip((7, 8, 9), second, strict=True)))
        expected = stats.ttest_ind(first, second, equal_var=False)
        assert found.p == pytest.approx(expected.pvalue)
        assert (found.low, found.high) == pytest.approx(expected.confidence_interval(0.95))
        assert (found.ahead, found.pairs) == (9, 9)
        assert compare_seeds({0: 0.5, 1: 0.5}, {2: 0.5, 3: 0.5}).p == 1
        found = compare_seeds({0: 1.0, 1: 1.0, 2: 1.0}, {3: 0.5, 4: 0.5, 5: 0.5})
        orders = list(itertools.combinations([1.0] * 3 + [0.5] * 3, 3))
        assert found.p == pytest.approx(np.mean([sum(chosen) in (3.0, 1.5) for chosen in orders]))

    def test_one_seed_tells_nothing(self):
        assert compare_seeds({0: 1.0}, {0: 0.0}) is None
        assert compare_seeds({0: 1.0, 1: 1.0}, {0: 0.0}) is None

    def test_equal_differences_have_the_exact_p_value_of_sign_flips(self):
        found = compare_seeds(by_seed(0.9, 0.8, 0.7), by_seed(0.8, 0.7, 0.6))
        flips = [abs(sum(signs)) for signs in itertools.product((1, -1), repeat=3)]
        assert found.p == np.mean([size >= 3 for size in flips]) == 0.25
        assert found.test == "exact sign-flip test"
        assert found.verdict == 0
        assert compare_seeds(by_seed(0.5, 0.5), by_seed(0.5, 0.5)).p == 1

    @pytest.mark.parametrize(
        ("first", "second", "verdict"),
        [
            ((0.98, 1.0, 0.99), (0.42, 0.44, 0.41), 1),
            ((0.42, 0.44, 0.41), (0.98, 1.0, 0.99), -1),
            ((0.97, 0.63, 0.69), (0.65, 0.67, 0.98), 0),  # seeds disagree
            ((0.9, 0.6, 0.61), (0.5, 0.59, 0.6), 0),  # seeds agree, but it may be chance
            ((0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.49), (0.5, 0.51, 0.52, 0.5, 0.5, 0.5, 0.5), 0),  # p < 0.05, one disagrees
        ],
    )
    def test_a_verdict_needs_every_seed_and_the_test(self, first, second, verdict):
        assert compare_seeds(by_seed(*first), by_seed(*second)).verdict == verdict

    def test_verdicts_on_equal_encodings_are_rarer_than_one_in_twenty(self):
        dice = np.random.default_rng(1)
        for count in (3, 5):
            pairs = dice.normal(0.6, 0.05, (2000, 2, count))
            wrong = [compare_seeds(by_seed(*one), by_seed(*other)).verdict != 0 for one, other in pairs]
            assert np.mean(wrong) < 0.06
