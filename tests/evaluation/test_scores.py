"""Scores as rows and as text."""

from __future__ import annotations

import pytest

from liere.evaluation.scores import Scores

RECORDS = (
    {
        "size": 36,
        "weights": "final",
        "examples": 2000,
        "predictions": "predictions/final-test-36.csv",
        "accuracy": {"value": 0.5, "low": 0.45, "high": 0.55, "method": "Jeffreys"},
        "loss": {"value": 1.25, "low": 1.0, "high": 1.5, "method": "bootstrap"},
    },
)
MORE = (*RECORDS, RECORDS[0] | {"size": 48, "policy": "rescale", "shuffle": "patches", "examples": 10})


def test_there_is_a_row_per_condition_with_the_ends_of_intervals():
    first, second = Scores(MORE).table(pandas=False)
    assert first == {
        "size": 36,
        "policy": "",
        "shuffle": "",
        "attention_scale": "",
        "placement": "",
        "accuracy": 0.5,
        "accuracy_low": 0.45,
        "accuracy_high": 0.55,
        "loss": 1.25,
        "loss_low": 1.0,
        "loss_high": 1.5,
        "examples": 2000,
    }
    assert (second["size"], second["policy"], second["shuffle"], second["examples"]) == (48, "rescale", "patches", 10)


def test_a_terminal_shows_accuracies_in_percent():
    header, _, first, second = repr(Scores(MORE)).splitlines()
    assert header.split("  ")[0] == "tested at"
    assert first.split() == ["36", "px", "50.0", "45.0", "55.0", "2,000"]
    assert "rescale" in second


def test_rows_are_a_data_frame_if_that_is_wanted():
    pandas = pytest.importorskip("pandas")
    scores = Scores(MORE)
    assert isinstance(scores.table(), pandas.DataFrame)
    assert scores.table(pandas=True).to_dict("records") == scores.table(pandas=False)
