from __future__ import annotations

import html
import json
import math

import pytest

pytest.importorskip("tests.training.requirements")

from liere.report.drawing import Drawing
from liere.report.table_cells import Cell, Column, Table
from liere.reproduce.catalog import CATALOGUE
from liere.reproduce.outcome import Claim, Outcome
from liere.reproduce.outcome_page import write_outcome
from tests.reproduce.fakes import fake_results

OUTCOME = Outcome(
    [
        Table(
            "Accuracy, %",
            [Column("encoding", numeric=False), Column("ours")],
            [[Cell("LieRE₈"), Cell("80.0", "79-81")]],
        )
    ],
    [Claim("LieRE₈ is <best>", "holds", "+5.0 points")],
    {"Accuracy by size": Drawing(b"\x89PNG mine", "<svg></svg>", "what it shows")},
    {"accuracy": {"value": 0.8, "ratio": math.inf}},
    ["A note."],
)


def test_page_markdown_and_json_say_the_same(tmp_path):
    results = fake_results("pooling", tmp_path / "runs", lambda *_: 0.5, details=lambda *_: {"seconds": 12.5})
    options = {"title": "A title", "scale": "small", "command": "liere reproduce pooling"}
    page = write_outcome(CATALOGUE["pooling"], OUTCOME, results, tmp_path / "out", **options)
    assert page == tmp_path / "out" / "pooling.html"
    assert (tmp_path / "out" / "pooling" / "accuracy-by-size.png").read_bytes() == b"\x89PNG mine"
    markdown = (tmp_path / "out" / "pooling.md").read_text()
    assert "| LieRE₈ | 80.0 (79-81) |" in markdown
    assert r"- LieRE₈ is \<best\>: **holds** (+5.0 points)" in markdown
    assert "![what it shows](pooling/accuracy-by-size.png)" in markdown
    assert "2 runs, 25 s of training in total" in markdown
    text = page.read_text()
    assert "<strong>holds</strong> (+5.0 points)" in text
    assert "LieRE₈ is &lt;best&gt;" in text
    assert "2 runs, 25 s of training in total" in html.unescape(text)
    numbers = json.loads((tmp_path / "out" / "pooling.json").read_text())
    assert numbers["numbers"] == {"accuracy": {"value": 0.8, "ratio": None}}  # JSON has no infinity
    assert numbers["claims"] == [{"text": "LieRE₈ is <best>", "verdict": "holds", "evidence": "+5.0 points"}]
    assert numbers["seconds"] == 25.0
    assert {run["encoding"] for run in numbers["runs"]} == {"liere8"}


def test_a_table_without_runs_has_none_to_list(tmp_path):
    write_outcome(CATALOGUE["flops"], OUTCOME, None, tmp_path, title="T", scale="small", command="c")
    assert json.loads((tmp_path / "flops.json").read_text())["runs"] == []
    assert "runs," not in (tmp_path / "flops.md").read_text()
