"""Verdicts on claims: decided only if seeds and test examples agree, and never with one seed."""

from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

from hypothesis import given
from hypothesis import strategies as st

from liere.evaluation.predictions import Predictions
from liere.evaluation.seeds import compare_seeds
from liere.reproduce.claims import compare, is_best, p_text
from liere.reproduce.outcome import Claim
from liere.reproduce.results import Found
from tests.reproduce.fakes import predictions


class TestClaims:
    @staticmethod
    def found(*accuracies: float) -> Found:
        return Found([predictions(accuracy, 2000, seed) for seed, accuracy in enumerate(accuracies)])

    def test_one_seed_decides_nothing_however_clear_it_is(self):
        for first, second in ((0.9, 0.1), (0.1, 0.9), (0.5, 0.5)):
            claim = compare("a", self.found(first), self.found(second))
            assert claim.verdict == "is not decided"
            assert claim.evidence.startswith("one seed; ")
            assert claim.evidence.endswith("on these test examples")
        best = {"liere8": self.found(0.9), "rope_mixed": self.found(0.1)}
        assert is_best("best", "liere8", best).verdict == "is not decided"
        assert compare("a", None, self.found(0.5)) == Claim("a", "is not decided", "not run")

    def test_a_clear_lead_in_every_seed_holds_and_its_opposite_does_not(self):
        ahead, behind = self.found(0.60, 0.62, 0.61), self.found(0.5, 0.51, 0.5)
        assert compare("a", ahead, behind).verdict == "holds"
        assert compare("a", behind, ahead).verdict == "does not hold"
        assert "ahead in 3 of 3 seeds, p < 0.001 over seeds; +10.7 points" in compare("a", ahead, behind).evidence
        assert compare("a", ahead, behind, loss=True).verdict == "holds"  # a lower loss is better
        assert compare("a", behind, ahead, loss=True).verdict == "does not hold"

    def test_seeds_that_disagree_decide_nothing(self):
        claim = compare("a", self.found(0.6, 0.7, 0.5), self.found(0.5, 0.5, 0.6))
        assert "ahead in 2 of 3 seeds" in claim.evidence
        assert claim.verdict == "is not decided"

    @given(
        ahead=st.lists(st.integers(0, 60), min_size=3, max_size=3),
        behind=st.lists(st.integers(0, 60), min_size=3, max_size=3),
    )
    def test_examples_that_the_other_lacks_count_for_neither(self, ahead, behind):
        def with_own(right: int, own: int, *, good: bool) -> Predictions:
            ids = [*range(60), *range(own, own + 40)]
            answers = [*(int(number < right) for number in range(60)), *([int(good)] * 40)]
            return Predictions(ids, [1] * 100, answers, [1.0 - answer for answer in answers])

        first = Found([with_own(right, 100, good=False) for right in ahead])
        second = Found([with_own(right, 200, good=True) for right in behind])
        expected = compare_seeds(
            *({seed: right / 60 for seed, right in enumerate(rights)} for rights in (ahead, behind))
        )
        for loss in (False, True):
            claim = compare("a", first, second, loss=loss)
            assert claim.evidence.startswith(f"ahead in {expected.ahead} of 3 seeds, {p_text(expected.p)} over seeds")
            assert claim.verdict in {"is not decided", {1: "holds", -1: "does not hold"}.get(expected.verdict)}

    def test_seeds_that_agree_by_chance_decide_nothing(self):
        claim = compare("a", self.found(0.9, 0.6, 0.61), self.found(0.5, 0.59, 0.6))
        assert "ahead in 3 of 3 seeds" in claim.evidence
        assert "p < 0.001 on these test examples" in claim.evidence
        assert claim.verdict == "is not decided"

    def test_a_lead_that_examples_do_not_show_is_not_decided(self):
        first, second = (0.510, 0.512, 0.511), (0.5, 0.501, 0.5015)
        claim = compare(
            "a", self.found(*first), Found([predictions(one, 2000, 10 + i) for i, one in enumerate(second)])
        )
        assert "p = 0.00" in claim.evidence.partition("over seeds")[0]
        assert claim.verdict == "is not decided"

    def test_runs_are_paired_by_their_seeds_not_by_their_order(self):
        drawn = {seed: predictions(accuracy, 2000, seed) for seed, accuracy in {0: 0.9, 1: 0.6, 2: 0.75}.items()}
        worse = {seed: predictions(accuracy, 2000, seed) for seed, accuracy in {2: 0.64, 0: 0.8, 1: 0.5}.items()}
        claim = compare("a", Found([*drawn.values()], [*drawn]), Found([*worse.values()], [*worse]))
        assert "ahead in 3 of 3 seeds" in claim.evidence
        assert claim.verdict == "holds"

    def test_the_best_is_held_against_the_second(self):
        found = {
            "liere8": self.found(0.7, 0.71, 0.7),
            "rope_mixed": self.found(0.6, 0.6, 0.61),
            "absolute": self.found(0.2, 0.2, 0.2),
        }
        claim = is_best("best", "liere8", found)
        assert claim.verdict == "holds"
        assert claim.evidence.startswith("against RoPE-Mixed")
