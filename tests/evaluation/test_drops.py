from __future__ import annotations

import math

import pytest

pytest.importorskip("tests.training.requirements")

import numpy as np

from liere.evaluation import resampling
from liere.evaluation.drops import drop_difference, relative_drop
from tests.evaluation.test_paired_tests import RIGHT_AND_WRONG, SHARES


def loop_drop(before: np.ndarray, after: np.ndarray, resamples: int = 3_000) -> tuple[float, float]:
    dice, count, drops = np.random.default_rng(21), len(before), []
    while len(drops) < resamples:
        drawn = dice.integers(count, size=count)
        if before[drawn].sum():
            drops.append(1 - after[drawn].sum() / before[drawn].sum())
    return np.quantile(drops, 0.025), np.quantile(drops, 0.975)


class TestRelativeDrop:
    @pytest.mark.parametrize(
        ("before", "after", "drop"),
        [(0.639, 0.196, 69.3), (0.409, 0.395, 3.4), (0.655, 0.297, 54.7), (0.470, 0.278, 40.9)],
    )
    def test_the_papers_numbers(self, before, after, drop):
        found = relative_drop(np.arange(1_000) < 1_000 * before, np.arange(1_000) < 1_000 * after)
        assert 100 * found.value == pytest.approx(drop, abs=0.05)
        assert found.low < found.value < found.high

    @pytest.mark.parametrize("few", [False, True])
    @pytest.mark.parametrize("pairs", [RIGHT_AND_WRONG, SHARES], ids=["right", "shares"])
    def test_it_is_that_of_a_plain_loop(self, pairs, few, monkeypatch):
        if few:  # few distinct values take another path
            monkeypatch.setattr(resampling, "DISTINCT", 1)
        found, expected = relative_drop(*pairs), loop_drop(*pairs)
        width = expected[1] - expected[0]
        assert found.value == pytest.approx(1 - pairs[1].mean() / pairs[0].mean())
        assert (found.low, found.high) == pytest.approx(expected, abs=0.06 * width)

    def test_pairs_tell_more_than_two_accuracies(self):
        before, after = np.arange(500) < 300, np.arange(500) < 290
        paired, unpaired = relative_drop(before, after), relative_drop(before, after[::-1])
        assert paired.value == unpaired.value
        assert paired.high - paired.low < (unpaired.high - unpaired.low) / 3

    def test_it_holds_the_truth_in_95_of_100_evaluations(self):
        dice, truth, hits = np.random.default_rng(30), 1 - (0.9 * 0.7 * 0.5 + 0.1 * 0.1) / 0.7, 0
        for seed in range(300):
            before = dice.random(500) < 0.7
            after = np.where(dice.random(500) < 0.9, before & (dice.random(500) < 0.5), dice.random(500) < 0.1)
            found = relative_drop(before, after, seed=seed, resamples=1_000)
            hits += found.low <= truth <= found.high
        assert 0.91 <= hits / 300 <= 0.985

    def test_few_right_answers_give_finite_ends(self):
        found = relative_drop([1, 0, 0, 0], [0, 1, 0, 0])
        assert found.value == 0
        assert math.isfinite(found.low)
        assert found.high <= 1

    def test_everything_lost_and_nothing_lost_are_constant(self):
        assert relative_drop([1, 1, 0], [0, 0, 0]).as_dict() == {"value": 1, "low": 1, "high": 1, "method": "constant"}
        assert relative_drop([1, 1, 0], [1, 1, 0]).as_dict() == {"value": 0, "low": 0, "high": 0, "method": "constant"}

    @pytest.mark.parametrize(
        ("before", "after", "message"),
        [
            ([0, 0], [1, 0], "before has no correct answer"),
            ([1, 0, 1], [1, 0], "before has 3 values and after has 2"),
            ([1, 2], [1, 0], "between 0 .* to 2"),
            ([1, 0], [-1, 0], "got -1 to 1"),
            ([], [], "at least one value"),
        ],
    )
    def test_what_has_no_drop_is_refused(self, before, after, message):
        with pytest.raises(ValueError, match=message):
            relative_drop(before, after)


class TestDropDifference:
    @staticmethod
    def answers(seed: int, *shares: float) -> list[np.ndarray]:
        dice = np.random.default_rng(seed)
        return [(dice.random(300) < share).astype(float) for share in shares]

    def test_it_is_the_difference_of_two_drops(self):
        a, b, c, d = self.answers(0, 0.7, 0.3, 0.6, 0.5)
        expected = relative_drop(a, b).value - relative_drop(c, d).value
        assert drop_difference((a, b), (c, d)).value == pytest.approx(expected)

    def test_its_interval_is_that_of_a_plain_loop(self):
        a, b, c, d = self.answers(1, 0.7, 0.3, 0.6, 0.5)
        dice, found = np.random.default_rng(5), []
        for _ in range(4000):
            drawn = dice.integers(300, size=300)
            drops = [1 - after[drawn].mean() / before[drawn].mean() for before, after in ((a, b), (c, d))]
            found.append(drops[0] - drops[1])
        interval = drop_difference((a, b), (c, d))
        assert (interval.low, interval.high) == pytest.approx(tuple(np.quantile(found, (0.025, 0.975))), abs=0.012)

    def test_a_model_against_itself_does_not_differ(self):
        a, b = self.answers(2, 0.7, 0.3)
        assert drop_difference((a, b), (a, b)).method == "constant"

    def test_nothing_right_before_is_reported(self):
        a, b = self.answers(2, 0.7, 0.3)
        with pytest.raises(ValueError, match="no correct answer"):
            drop_difference((a, b), (0 * a, b))
