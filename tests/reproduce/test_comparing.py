"""A comparison from plan to report."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("tests.training.requirements")
from liere.comparison.failures import RunsFailedError
from liere.report.picture_data import Pictures
from liere.reproduce import comparing
from tests.comparison.plans import plan
from tests.evaluation.test_summary import pretend


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Return a plan of two runs, of which the first is done; nothing is trained."""
    monkeypatch.setattr("liere.comparison.result.make_pictures", lambda runs, sizes: Pictures([], []))
    found = plan(tmp_path / "out", ["liere8", "absolute"], examples=200)
    pretend(found.runs[0].folder, "liere8", 0, 0.9, sizes=(36,))
    return found


def test_a_comparison_that_is_done_is_reported(made, capsys):
    pretend(made.runs[1].folder, "absolute", 0, 0.4, sizes=(36,))
    result = comparing.run_comparison(made, command="a call")
    assert [row["encoding"] for row in result.table(pandas=False)] == ["liere8", "absolute"]
    assert result.page == made.folder / "report.html"
    assert json.loads((made.folder / "report.json").read_text())["command"] == "a call"
    assert capsys.readouterr().out.startswith("encoding ")
    comparing.run_comparison(made, command="a call", progress=False)
    assert capsys.readouterr().out == ""


def test_what_failed_is_an_error_with_what_the_others_found(made, monkeypatch):
    monkeypatch.setattr(comparing, "run_plan", lambda plan, *, failed, **_: failed("absolute-seed0 failed"))
    with pytest.raises(RunsFailedError, match="1 of 2 runs failed: absolute-seed0 failed") as stop:
        comparing.run_comparison(made, command="a call", progress=False)
    assert [row["encoding"] for row in stop.value.result.table(pandas=False)] == ["liere8"]
    assert stop.value.result.page.exists()


def test_where_all_failed_there_is_no_report(tmp_path, monkeypatch):
    monkeypatch.setattr(comparing, "run_plan", lambda plan, *, failed, **_: failed("none-seed0 failed"))
    with pytest.raises(RunsFailedError) as stop:
        comparing.run_comparison(plan(tmp_path / "out"), command="a call", progress=False)
    assert stop.value.result is None
    assert not (tmp_path / "out" / "report.html").exists()


def test_an_interruption_says_that_finished_runs_are_kept(made, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(comparing, "run_plan", interrupt)
    with pytest.raises(KeyboardInterrupt, match="finished runs are kept: run the same command again to resume"):
        comparing.run_comparison(made, command="a call", progress=False)


def test_numbers_of_the_paper_stand_beside_runs_of_its_task(made, tmp_path):
    runs = [pretend(tmp_path / "one", "liere8", 0, 0.9, sizes=(36, 108), data={"size": 36})]
    summary = comparing.report_runs(runs, tmp_path / "report", command="a call").summary
    assert summary["encodings"][0]["paper"] == {"108": 99.5}
    assert summary["paper_note"]


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "a\x07b", "x" * 201])
def test_names_of_files_are_plain(name):
    with pytest.raises(
        ValueError, match=r"--name must be a plain file name such as report, got .*: use --out for the folder"
    ):
        comparing.check_report_name(name)
    comparing.check_report_name("my report")
