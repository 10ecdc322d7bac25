from __future__ import annotations

import pytest

pytest.importorskip("pydantic")

from liere.evaluation.requested_tests import make_conditions
from liere.evaluation.scores import Scores

RECORD = {
    "size": 36,
    "policy": "rescale",
    "examples": 1200,
    "weights": "final",
    "accuracy": {"value": 0.5, "low": 0.4, "high": 0.625},
    "loss": {"value": 1.5, "low": 1.25, "high": 1.75},
    "predictions": "predictions/p.csv",
}


def test_a_row_has_the_condition_and_both_intervals():
    (row,) = Scores((RECORD,)).table(pandas=False)
    assert row == {
        "size": 36,
        "policy": "rescale",
        "shuffle": "",
        "attention_scale": "",
        "placement": "",
        "accuracy": 0.5,
        "accuracy_low": 0.4,
        "accuracy_high": 0.625,
        "loss": 1.5,
        "loss_low": 1.25,
        "loss_high": 1.75,
        "examples": 1200,
    }


def test_rows_are_a_data_frame_where_there_is_pandas():
    pandas = pytest.importorskip("pandas")
    assert isinstance(Scores((RECORD,)).table(), pandas.DataFrame)


def test_scores_show_themselves():
    lines = repr(Scores((RECORD,))).splitlines()
    assert lines[0].split() == ["tested", "at", "accuracy,", "%", "low", "high", "examples"]
    assert lines[2].split()[-4:] == ["50.0", "40.0", "62.5", "1,200"]


def test_conditions_are_all_combinations_in_order():
    found = make_conditions([32, 48], policies=["extend", "rescale"], shuffle=["patches"], placements=["", "8"])
    assert len(found) == len(set(found)) == 16
    assert [one.name for one in found[:4]] == [
        "32-extend",
        "32-extend-shuffled-patches",
        "32-extend-placed-8",
        found[3].name,
    ]
    assert (found[3].placement, found[3].shuffle) == ("8", "patches")
