from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("tests.training.requirements")

import numpy as np

from liere.evaluation.paired_tests import paired_difference
from liere.evaluation.pairs import compare_pairs, pairs_note, share_examples
from liere.evaluation.predictions import Predictions, common_examples
from liere.evaluation.seeds import compare_seeds


def predictions(answers: dict[int, bool]) -> Predictions:
    ids = sorted(answers)
    labels = [number % 3 for number in ids]
    given_answers = [label if answers[number] else label + 1 for number, label in zip(ids, labels, strict=True)]
    return Predictions(ids, labels, given_answers, [0.5 + number for number in ids])


subsets = st.sets(st.integers(0, 29), min_size=24)


class TestCommonExamples:
    @given(parts=st.lists(subsets, min_size=1, max_size=4))
    def test_what_all_have_is_kept_in_order_with_its_own_answers(self, parts):
        given_parts = [
            predictions({number: number % 2 == place % 2 for number in ids}) for place, ids in enumerate(parts)
        ]
        ids = sorted(set.intersection(*parts))
        if len(ids) < 0.5 * max(map(len, parts)):
            with pytest.raises(ValueError, match="are common to these runs"):
                common_examples(given_parts)
            return
        for part, common in zip(given_parts, common_examples(given_parts), strict=True):
            places = [part.ids.index(number) for number in ids]
            for column in ("ids", "labels", "predictions", "losses"):
                assert getattr(common, column) == [getattr(part, column)[place] for place in places]

    def test_different_labels_of_one_example_are_refused(self):
        one = Predictions([0, 1], [0, 1], [0, 1], [0.1, 0.1])
        other = Predictions([0, 1], [0, 2], [0, 1], [0.1, 0.1])
        with pytest.raises(ValueError, match=r"test example 1 has the labels \[1, 2\].*evaluate them again"):
            common_examples([one, other])

    def test_too_few_common_examples_are_refused(self):
        one, other = predictions(dict.fromkeys(range(10), True)), predictions(dict.fromkeys(range(6, 16), True))
        with pytest.raises(ValueError, match="only 4 of 10 test examples are common"):
            common_examples([one, other])


class TestPairs:
    def test_one_unreadable_file_in_each_run_pairs_the_others(self):
        chance = np.random.default_rng(0)
        first, second = ({number: bool(chance.random() < share) for number in range(30)} for share in (0.5, 0.9))
        del first[3], second[17]
        found = {36: {"absolute": {0: predictions(first)}, "liere": {0: predictions(second)}}}
        (pair,) = compare_pairs(*share_examples(found))
        ids = sorted(set(first) & set(second))
        expected = paired_difference(*(np.array([float(part[i]) for i in ids]) for part in (second, first)))
        assert (pair["first"], pair["second"], pair["left_out"]) == ("liere", "absolute", 2)
        assert pair["p"] == expected.p
        assert pair["difference"] == expected.interval.value

    def test_nothing_is_said_where_nothing_is_left_out(self):
        same = {number: number % 2 == 0 for number in range(20)}
        found = {36: {name: {0: predictions(same)} for name in ("absolute", "liere")}}
        shared, left_out = share_examples(found)
        assert (shared, left_out) == (found, {})
        (pair,) = compare_pairs(shared, left_out)
        assert "left_out" not in pair
        assert pairs_note(found) != pairs_note({36: {"liere": {0: predictions(same)}}}) == ""

    @given(
        parts=st.lists(st.dictionaries(st.integers(0, 19), st.booleans(), min_size=17), min_size=6, max_size=6),
    )
    def test_seeds_are_compared_on_the_examples_that_all_runs_have(self, parts):
        ids = set.intersection(*map(set, parts))
        found = {36: {"absolute": {}, "liere": {}}}
        for place, part in enumerate(parts):
            found[36]["absolute" if place < 3 else "liere"][place % 3] = predictions(part)
        if len(ids) < 0.5 * max(map(len, parts)):
            return
        (pair,) = compare_pairs(*share_examples(found))
        shares = [sum(part[number] for number in ids) / len(ids) for part in parts]
        expected = compare_seeds(dict(enumerate(shares[3:])), dict(enumerate(shares[:3])))
        assert pair["over_seeds"]["difference"] == pytest.approx(expected.difference, abs=1e-12)
        assert pair["over_seeds"]["difference"] == pytest.approx(pair["difference"], abs=1e-12)
        assert (pair["over_seeds"]["ahead"], pair["over_seeds"]["behind"]) == (expected.ahead, expected.behind)
        assert pair.get("left_out", 0) == len(set.union(*map(set, parts)) - ids)
