from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from liere.evaluation.compute_saving import compute_savings, examples_to_reach, mean_curve, monotone


def curve(*accuracies: float, step: int = 100) -> list[dict[str, float]]:
    return [
        {"examples": step * (place + 1), "accuracy": accuracy, "loss": 1 - accuracy}
        for place, accuracy in enumerate(accuracies)
    ]


class TestMonotone:
    @given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
    def test_it_is_scipys_isotonic_regression(self, values):
        optimize = pytest.importorskip("scipy.optimize")
        if not hasattr(optimize, "isotonic_regression"):
            pytest.skip("scipy before 1.12")
        assert monotone(values) == pytest.approx(list(optimize.isotonic_regression(values).x), abs=1e-12)

    def test_what_never_falls_stays(self):
        assert monotone([0.1, 0.2, 0.2, 0.7]) == [0.1, 0.2, 0.2, 0.7]
        assert monotone([]) == []

    def test_a_lucky_validation_is_averaged_with_those_after_it(self):
        assert monotone([0.25, 1.0, 0.25, 0.25, 0.75]) == [0.25, 0.5, 0.5, 0.5, 0.75]


class TestReaching:
    def test_between_validations_it_is_linear(self):
        points = curve(0.2, 0.4, 0.8)
        for target, examples in [(0.3, 150), (0.4, 200), (0.5, 225), (0.8, 300)]:
            assert examples_to_reach(points, target) == pytest.approx(examples)

    def test_never_is_none_and_before_the_first_validation_is_the_first(self):
        assert examples_to_reach(curve(0.2, 0.4), 0.41) is None
        assert examples_to_reach(curve(0.2, 0.4), 0.1) == 100

    def test_validations_need_not_be_evenly_spaced(self):
        points = [{"examples": 10, "accuracy": 0.0}, {"examples": 1_010, "accuracy": 0.5}]
        assert examples_to_reach(points, 0.25) == pytest.approx(510)

    def test_a_plateau_is_reached_where_it_begins(self):
        assert examples_to_reach(curve(0.1, 0.6, 0.6, 0.6), 0.6) == pytest.approx(200)

    def test_one_lucky_validation_does_not_reach(self):
        points = curve(0.1, 0.7, 0.1, 0.1, 0.1, 0.5, 0.7)
        assert examples_to_reach(points, 0.6) == pytest.approx(650)
        assert examples_to_reach(points, 0.71) is None

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0, 1), st.floats(0, 1))
    def test_more_takes_longer(self, accuracies, one, other):
        low, high = sorted([one, other])
        first, second = (examples_to_reach(curve(*accuracies), target) for target in (low, high))
        if second is not None:
            assert first is not None
            assert 100 <= first <= second + 1e-3 <= 100 * len(accuracies) + 1e-2

    def test_noise_shifts_it_less_than_the_best_so_far(self):
        dice, target, errors = random.Random(0), 0.5, {"monotone": 0.0, "best so far": 0.0}
        truth = -30 * math.log(1 - target / 0.6)
        for _ in range(200):
            noisy = [0.6 * (1 - math.exp(-n / 30)) + dice.gauss(0, 0.02) for n in range(1, 121)]
            best = [max(noisy[: n + 1]) for n in range(len(noisy))]
            for name, values in [("monotone", noisy), ("best so far", best)]:
                found = examples_to_reach(curve(*values, step=1), target)
                assert found is not None
                errors[name] += (found - truth) / 200
        assert errors["best so far"] < -0.1 * truth  # too early
        assert abs(errors["monotone"]) < 0.04 * truth


class TestMean:
    def test_it_is_the_mean_over_seeds(self):
        found = mean_curve([curve(0.2, 0.4), curve(0.4, 0.8)])
        assert [point["examples"] for point in found] == [100, 200]
        assert [point["accuracy"] for point in found] == pytest.approx([0.3, 0.6])

    def test_only_validations_of_all_seeds_count(self):
        found = mean_curve([curve(0.2, 0.4, 0.6), curve(0.4, 0.6, step=200), curve(0.3, 0.5, 0.7)])
        assert [(point["examples"], round(point["accuracy"], 6)) for point in found] == [(200, round(1.3 / 3, 6))]

    @pytest.mark.parametrize(
        ("curves", "message"),
        [
            ([], r"curves of \[\]"),
            ([[]], r"curves of \[0\]"),
            ([curve(0.5, step=10), curve(0.5, step=7)], "none at the same number of examples"),
            ([curve(0.5, step=0)], "above 0"),
            ([curve(0.5, math.nan)], "finite"),
        ],
    )
    def test_what_has_no_mean_is_refused(self, curves, message):
        with pytest.raises(ValueError, match=message):
            mean_curve(curves)


COST = {"absolute": 2.0, "liere8": 3.0, "none": 1.0}


class TestSavings:
    def test_by_hand(self):
        curves = {
            "absolute": [curve(0.1, 0.2, 0.3, 0.4)],
            "liere8": [curve(0.2, 0.6, 0.7, 0.8)],
            "none": [curve(0.1, 0.1, 0.2, 0.3)],
        }
        found = compute_savings(curves, COST)
        base, faster, never = found["absolute"], found["liere8"], found["none"]
        assert {saving.target for saving in found.values()} == {0.4}
        assert (base.examples, base.operations, base.fewer_examples, base.fewer_operations) == (400, 800, 1, 1)
        assert faster.examples == pytest.approx(150)
        assert faster.operations == pytest.approx(450)
        assert faster.fewer_examples == pytest.approx(400 / 150)
        assert faster.fewer_operations == pytest.approx(800 / 450)
        assert (never.examples, never.operations, never.fewer_examples, never.fewer_operations) == (None,) * 4

    def test_seeds_are_averaged_first(self):
        found = compute_savings(
            {"absolute": [curve(0.1, 0.3), curve(0.3, 0.5)], "liere8": [curve(0.0, 0.8), curve(0.2, 0.8)]}, COST
        )
        assert found["liere8"].target == pytest.approx(0.4)
        assert found["liere8"].examples == pytest.approx(100 + 100 * 0.3 / 0.7)

    def test_a_baseline_that_rises_no_more_is_not_charged_for_the_rest(self):
        found = compute_savings({"absolute": [curve(0.1, 0.4, 0.4, 0.4, 0.4, 0.4)], "liere8": [curve(0.4, 0.5)]}, COST)
        assert found["absolute"].examples == pytest.approx(200)
        assert found["liere8"].fewer_examples == pytest.approx(2)

    def test_a_noisy_end_of_the_baseline_is_averaged(self):
        found = compute_savings({"absolute": [curve(0.1, 0.45, 0.35, 0.4)], "liere8": [curve(0.2, 0.6)]}, COST)
        assert found["liere8"].target == pytest.approx(0.4)

    @given(st.lists(st.lists(st.floats(0.01, 1), min_size=5, max_size=5), min_size=1, max_size=3))
    def test_the_same_curves_save_nothing(self, seeds):
        curves = [curve(*seed) for seed in seeds]
        found = compute_savings({"absolute": curves, "same": curves}, {"absolute": 7.0, "same": 7.0})
        assert found["same"].fewer_examples == found["same"].fewer_operations == 1

    def test_every_other_cost_changes_operations_only(self):
        curves = {"absolute": [curve(0.1, 0.4)], "liere8": [curve(0.4, 0.5)]}
        cheap, dear = (compute_savings(curves, {"absolute": 1.0, "liere8": cost})["liere8"] for cost in (1.0, 4.0))
        assert cheap.fewer_examples == dear.fewer_examples == 2
        assert (cheap.fewer_operations, dear.fewer_operations) == (2, 0.5)

    @pytest.mark.parametrize(
        ("baseline", "cost", "message"),
        [
            ("absolut", {"absolute": 1.0}, "'absolut' has no curve: did you mean 'absolute'"),
            ("absolute", {}, "cost of 'absolute' must be above 0, got None"),
            ("absolute", {"absolute": 0.0}, "got 0.0"),
        ],
    )
    def test_what_is_missing_is_reported(self, baseline, cost, message):
        with pytest.raises(ValueError, match=message):
            compute_savings({"absolute": [curve(0.5)]}, cost, baseline)
