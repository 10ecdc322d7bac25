"""Rows, text and files of the result of a comparison."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("tests.training.requirements")
from liere.comparison.result import ComparisonResult
from liere.evaluation.summary import summarize
from liere.report.picture_data import Pictures
from tests.evaluation.test_summary import pretend


@pytest.fixture
def result(tmp_path):
    runs = [
        pretend(tmp_path / "runs" / f"{encoding}-seed{seed}", encoding, seed, accuracy + 0.1 * seed, sizes=(36,))
        for encoding, accuracy in (("absolute", 0.3), ("liere8", 0.7))
        for seed in (0, 1, 2)
    ]
    return ComparisonResult(tuple(runs), summarize(runs, command="a call", root=tmp_path))


def test_there_is_a_row_per_encoding_and_size_with_the_spread_of_seeds(result):
    rows = result.table(pandas=False)
    assert [(row["encoding"], row["size"]) for row in rows] == [("absolute", 36), ("liere8", 36)]
    for row, runs in zip(rows, (result.runs[:3], result.runs[3:]), strict=True):
        found = [run.evaluations()[0]["accuracy"]["value"] for run in runs]
        assert row["mean"] == pytest.approx(sum(found) / 3)
        assert (row["worst"], row["best"]) == (min(found), max(found))
        assert row["low"] < row["worst"]  # the interval of three seeds is wide
        assert row["high"] > row["best"]
        assert (row["seeds"], row["examples"], row["trained_examples"]) == ([0, 1, 2], 200, 72)
        assert row["seconds"] == 11.0


def test_one_seed_has_no_interval(result, tmp_path):
    one = ComparisonResult(result.runs[:1], summarize(result.runs[:1], command="a call", root=tmp_path))
    (row,) = one.table(pandas=False)
    assert (row["low"], row["high"]) == (None, None)
    assert row["worst"] == row["mean"] == row["best"]


def test_a_report_is_written_where_it_is_asked_for(result, tmp_path, monkeypatch):
    assert result.page is None
    monkeypatch.setattr("liere.comparison.result.make_pictures", lambda runs, sizes: Pictures([], []))  # no weights
    page = result.report(tmp_path / "new" / "b.html")
    assert page == tmp_path / "new" / "b.html"
    assert "LieRE₈" in page.read_text()
    assert json.loads(page.with_suffix(".json").read_text()) == result.summary
    assert "LieRE₈" in page.with_suffix(".md").read_text()


@pytest.mark.parametrize("name", ["b", "b.md", ".html", ".b.html"])
def test_the_name_of_a_page_is_one(result, tmp_path, name):
    with pytest.raises(ValueError, match=r"file must be a name that ends with \.html, for example report\.html, got"):
        result.report(tmp_path / name)


def test_a_terminal_shows_the_table_and_what_follows_from_it(result):
    table, _, headline = repr(result).partition("\n\n")
    lines = {line.split()[0]: line for line in table.splitlines() if line}
    best = result.table(pandas=False)[1]
    assert f"{100 * best['mean']:.1f}" in lines["LieRE₈"]
    assert "LieRE₈" in headline
    assert "is ahead of absolute" in headline
