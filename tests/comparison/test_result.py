from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

from liere.comparison.result import ComparisonResult


def result() -> ComparisonResult:
    over_seeds = {"mean": 0.5, "least": 0.25, "most": 0.75, "low": 0.1, "high": 0.9, "seeds": 2}
    evaluations = [{"size": size, "examples": 20, "over_seeds": over_seeds} for size in (36, 48)]
    row = {"encoding": "liere8", "seeds": [0, 3], "parameters": 9, "encoding_parameters": 2, "seconds": 1.5}
    return ComparisonResult((), {"encodings": [row | {"examples": 16, "evaluations": evaluations}]})


def test_there_is_a_row_for_each_encoding_and_size():
    first, second = result().table(pandas=False)
    assert first == {
        "encoding": "liere8",
        "size": 36,
        "mean": 0.5,
        "worst": 0.25,
        "best": 0.75,
        "low": 0.1,
        "high": 0.9,
        "seeds": [0, 3],
        "examples": 20,
        "parameters": 9,
        "encoding_parameters": 2,
        "trained_examples": 16,
        "seconds": 1.5,
    }
    assert second == first | {"size": 48}


def test_without_pandas_rows_are_dicts(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert isinstance(result().table(), list)


@pytest.mark.parametrize("name", ["b", "b.md", ".html", "folder/"])
def test_a_report_is_a_page(tmp_path, name):
    with pytest.raises(ValueError, match=r"must end with \.html: Markdown and JSON are written beside it"):
        result().report(tmp_path / name)
    assert not list(tmp_path.iterdir())
