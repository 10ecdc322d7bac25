"""`liere eval`."""

from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")
from liere.cli import main
from liere.evaluation import evaluate
from tests.training.tiny import make_run, quiet

pytestmark = quiet


def test_a_damaged_result_is_named(config, tmp_path, fail):
    run = make_run(tmp_path / "run")
    run.result_file.write_text("{")
    assert "result.json is damaged" in fail("eval", run.folder)


def test_a_run_that_is_not_finished_is_told(config, tmp_path, fail):
    run = make_run(tmp_path / "run")
    error = fail("eval", run.folder)
    assert f"run {run.folder} is not finished: run liere train --resume {run.folder}" in error


def test_a_size_that_does_not_fit_is_told(finished, fail):
    assert "size must be a multiple of 12 px" in fail("eval", finished.folder, "--sizes 36 100")
    assert not finished.evaluation_file.exists()


def test_a_size_that_needs_too_much_memory_is_refused(finished, fail, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        main(["eval", str(finished.folder), "--sizes", "36", "100000"])
    assert "--sizes: must be at most 10,000, got 100000" in capsys.readouterr().err
    monkeypatch.setattr(evaluate, "memory_bytes", lambda: 10**9)
    error = fail("eval", finished.folder, "--sizes 9996 --examples 2")
    assert "2 images of size 9996 need at least 2 GB, but the machine has 1 GB of memory: reduce sizes" in error
    assert not finished.evaluation_file.exists()


def test_there_has_to_be_a_run(tmp_path, fail):
    assert f"no run at {tmp_path / 'none'}" in fail("eval", tmp_path / "none")
