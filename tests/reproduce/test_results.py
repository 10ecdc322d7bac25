"""Combined results of runs: means over seeds, with examples matched by id."""

from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

import numpy as np

from liere.evaluation.predictions import Predictions
from liere.reproduce.results import Found, pair, shared
from liere.reproduce.wanted_runs import Key
from liere.runs.conditions import Condition
from tests.reproduce.fakes import fake_results, predictions


class TestFound:
    def test_seeds_are_averaged_example_by_example(self):
        one, other = predictions(0.5, 100, 0), predictions(0.7, 100, 1)
        found = Found([one, other])
        assert np.array_equal(found.correct, (one.correct + other.correct) / 2)
        assert found.accuracy.value == pytest.approx(0.6)
        assert found.by_seed == [0.5, 0.7]

    def test_examples_are_paired_by_their_ids(self):
        one, other = predictions(0.5, 100, 0), predictions(0.7, 100, 1)
        first, second = Found([without(one, 3)]), Found([without(other, 7), other])
        ids = [number for number in range(100) if number not in (3, 7)]
        both = pair(first, second)
        assert np.array_equal(both[0], one.correct[ids])
        assert np.array_equal(both[1], other.correct[ids])
        assert np.array_equal(pair(first, second, loss=True)[0], np.array(one.losses)[ids])

    def test_seeds_are_compared_on_the_examples_that_all_results_have(self):
        one, other = predictions(0.5, 100, 0), predictions(0.7, 100, 1)
        first, second = Found([without(one, 3), one], [7, 8]), Found([without(other, 4)], [7])
        ids = [number for number in range(100) if number not in (3, 4)]
        both = shared(first, second)
        assert [found.seeds for found in both] == [[7, 8], [7]]
        assert [found.by_seed for found in both] == [[one.correct[ids].mean()] * 2, [other.correct[ids].mean()]]
        assert shared(both[0], both[1]) == both
        assert shared(both[0])[0] is both[0]

    def test_examples_with_other_labels_are_not_paired(self):
        one, other = predictions(0.5, 100, 0), predictions(0.7, 100, 1)
        other.labels[4] += 1
        with pytest.raises(ValueError, match=r"test example 4 has the labels \[4, 5\], .*evaluate them again"):
            pair(Found([one]), Found([other]))
        with pytest.raises(ValueError, match="test example 4 has the labels"):
            _ = Found([one, other]).accuracy

    def test_few_common_examples_are_not_enough(self):
        one = predictions(0.5, 100, 0)
        with pytest.raises(ValueError, match="only 40 of 100 test examples are common to these runs"):
            pair(Found([one]), Found([without(one, *range(60))]))


def without(found: Predictions, *ids: int) -> Predictions:
    """Return predictions without some of the examples."""
    rows = [row for row in zip(*vars(found).values(), strict=True) if row[0] not in ids]
    return Predictions(*map(list, zip(*rows, strict=True)))


def test_fine_tuned_runs_are_found_beside_those_that_they_start_from(tmp_path):
    def accuracy(key: Key, condition: Condition, seed: int) -> float:
        return 0.7 if key.fine_tuned else 0.6

    results = fake_results("resolution", tmp_path, accuracy, encodings=["liere"])
    assert len(results.unique_runs()) == len(results.all_runs()) == 2
    found = {
        tuned: results.found(Key("CIFAR-10", "", "liere", tuned), Condition(48, "extend")) for tuned in (False, True)
    }
    assert [found[tuned].by_seed for tuned in (False, True)] == [[0.6], [0.7]]
    assert results.found(Key("CIFAR-10", "", "liere8")) is None
    assert results.found(Key("CIFAR-10", "", "liere"), Condition(96, "extend")) is None


def test_examples_that_some_runs_lack_are_counted(tmp_path):
    results = fake_results("pooling", tmp_path, lambda *_: 0.5)
    keys = list(results.runs)
    whole = {key: results.found(key) for key in keys}
    assert results.left_out_notes() == []
    whole[keys[0]].predictions[0] = without(whole[keys[0]].predictions[0], 3, 7)
    (note,) = results.left_out_notes()
    assert note == "Comparisons leave out test examples that some runs lack: at most 2."
