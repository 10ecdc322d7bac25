"""`liere demo`."""

from __future__ import annotations

import json

import pytest

from liere.cli import main


@pytest.mark.parametrize(("options", "encodings", "sizes"), [([], 5, [108, 168, 276, 372]), (["--quick"], 2, [60, 84])])
def test_the_demo_compares_encodings(monkeypatch, tmp_path, options, encodings, sizes):
    pytest.importorskip("pydantic")
    from liere.comparison.result import ComparisonResult

    plans = []

    def run_comparison(plan, **_):
        plans.append(plan)
        return ComparisonResult((), {})

    monkeypatch.setattr("liere.toolkit.comparisons.run_comparison", run_comparison)
    monkeypatch.setattr("liere.commands.results._show", lambda result: None)
    assert main(["demo", "--out", str(tmp_path), *options]) == 0
    (plan,) = plans
    assert len(plan.runs) == encodings
    assert {run.config.model.encoding for run in plan.runs} >= {"absolute", "liere"}
    assert plan.sizes == sizes
    assert len({run.config.training.seed for run in plan.runs}) == 1
    placed = {run.config.model.encoding for run in plan.runs if run.config.model.position_shift}
    assert placed == ({run.config.model.encoding for run in plan.runs} - {"absolute"})


@pytest.mark.slow
def test_the_quick_demo_shows_the_contrast(tmp_path, capsys):
    pytest.importorskip("pydantic")
    assert main(["demo", "--quick", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.rstrip().endswith("report.html")
    report = json.loads((tmp_path / "quick" / "report.json").read_text())
    accuracy = {row["encoding"]: row["evaluations"][0]["accuracy"]["value"] for row in report["encodings"]}
    assert accuracy["absolute"] < 0.7
    assert accuracy["liere"] > 0.95
