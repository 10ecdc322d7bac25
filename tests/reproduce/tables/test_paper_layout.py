from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

from liere.evaluation.intervals import Interval
from liere.reproduce.claims import compare
from liere.reproduce.measured import Measured
from liere.reproduce.outcome import Claim
from liere.reproduce.paper_numbers import Printed
from liere.reproduce.tables.one_variation import build_variation
from liere.reproduce.tables.paper_layout import grid_numbers, grid_table, interval_note, slips, views_notes
from tests.reproduce.fakes import fake_results, texts_of

OURS = {("absolute", "A"): 0.5, ("liere8", "A"): 0.7, ("liere8", "B"): 0.6}
PAPER = {("liere8", "A"): Printed(70.3, 69.4, 71.2), ("absolute", "A"): Printed(63.9, slip="it is a slip")}


def ours(encoding: str, column: str) -> Measured | None:
    value = OURS.get((encoding, column))
    return None if value is None else Measured(Interval(value, value - 0.01, value + 0.01, "Jeffreys"), [value])


def paper(row: str, column: str) -> Printed | None:
    return PAPER.get((row, column))


def test_columns_have_the_papers_numbers_where_there_are_any_and_the_best_is_marked():
    table = grid_table("Title", ["absolute", "liere8"], ["A", "B"], ours, paper)
    assert table.header == ["encoding", "A, ours", "A, paper", "B, ours"]
    assert texts_of(table) == {
        "absolute, init 0.02": ["50.0 (49.0-51.0)", "63.9*", "–"],
        "LieRE₈": ["70.0 (69.0-71.0)", "70.3 (69.4-71.2)", "60.0 (59.0-61.0)"],
    }
    # A single number is never marked as the best.
    assert [[cell.strong for cell in row] for row in table.rows] == [[False] * 4, [False, True, False, False]]


def test_the_least_may_be_the_best():
    table = grid_table("Title", ["absolute", "liere8"], ["A"], ours, paper, best=min, digits=2, scale=1)
    assert [row[1].strong for row in table.rows] == [True, False]
    assert table.rows[0][1].text == "0.50 (0.49-0.51)"


def test_numbers_leave_out_what_was_not_run():
    found = grid_numbers(["absolute", "liere8"], ["A", "B"], ours)
    assert {name: list(row) for name, row in found.items()} == {"absolute": ["A"], "liere8": ["A", "B"]}
    assert found["liere8"]["B"]["value"] == 0.6


def test_slips_are_told_for_rows_that_are_shown():
    assert slips(["absolute", "liere8"], ["A", "B"], paper) == [
        "* absolute, init 0.02, A: error in the paper; it is a slip."
    ]
    assert slips(["liere8"], ["A"], paper) == []


def test_clips_are_explained_where_there_are_clips():
    assert views_notes(["CIFAR-100"]) == []
    assert "56,745 clips" in views_notes(["CIFAR-100", "UCF101"])[0]


@pytest.mark.parametrize(("seeds", "start"), [([0], "One seed: in parentheses"), ([0, 1], "Ours: mean over seeds")])
def test_brackets_are_explained_by_the_number_of_seeds(tmp_path, seeds, start):
    results = fake_results("pooling", tmp_path, lambda *_: 0.5, seeds=seeds)
    assert interval_note(results).startswith(start)
    assert "with one seed" not in interval_note(results)
    (_, *rest) = results.runs
    results.runs[rest[0]] = results.runs[rest[0]][:1]
    assert ("with one seed" in interval_note(results)) == (len(seeds) > 1)


def test_a_variation_that_was_not_run_is_left_open(tmp_path):
    results = fake_results("pooling", tmp_path, lambda key, *_: 0.5)
    results.runs = {key: runs for key, runs in results.runs.items() if key.variant == "CLS"}

    def claims(found) -> list[Claim]:
        return [compare("mean pooling is better", found("liere8", "mean"), found("liere8", "CLS"))]

    outcome = build_variation(results, "Accuracy by pooling, %", lambda row, variant: None, claims)
    assert outcome.claims == [Claim("mean pooling is better", "is not decided", "not run")]
    assert outcome.tables[0].header == ["encoding", "CLS, ours"]
    assert outcome.numbers["data"] == "CIFAR-10"
    ((variant, found),) = outcome.numbers["accuracy"]["liere8"].items()
    assert (variant, found["value"], found["by_seed"]) == ("CLS", 0.5, [0.5])
