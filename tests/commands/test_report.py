"""`liere report`."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("tests.training.requirements")
from tests.training.tiny import make_run, quiet

pytestmark = quiet


def test_a_report_needs_evaluated_runs(finished, tmp_path, fail, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = make_run(tmp_path / "run")
    assert "is not finished" in fail("report", run.folder, "--out report")
    assert f"has not been evaluated: run liere eval {finished.folder}" in fail(
        "report", finished.folder, "--out report"
    )


@pytest.mark.parametrize("name", ["../x", "/x", "a/b", "", ".", ".hidden", "a\x07b", 300 * "x"])
def test_a_report_stays_in_its_folder(finished, tmp_path, fail, name):
    error = fail("report", finished.folder, "--out", tmp_path / "report", f"--name={name}")
    assert f"--name must be a plain file name such as report, got {name!r}" in error
    assert not (tmp_path / "report").exists()


def test_a_report_needs_runs(tmp_path, fail):
    error = fail("report", tmp_path / "none", "--out", tmp_path / "report")
    assert f"{tmp_path / 'none'} is neither a run nor a comparison" in error


def test_a_report_without_matplotlib_leaves_nothing(finished, tmp_path, fail, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    error = fail("report", finished.folder, "--out", tmp_path / "report")
    assert error == "liere: error: pictures need matplotlib: pip install 'liere[plot]'\n"
