"""Which runs of a plan are executed, in which order, and which callbacks are called."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("tests.training.requirements")
from liere.comparison import execution
from tests.comparison.plans import plan
from tests.evaluation.test_summary import pretend


@pytest.fixture
def jobs(monkeypatch):
    """Record the jobs instead of running them; jobs named in `codes` end with that exit code."""
    received, codes = [], {}

    def run_jobs(found, *, slots, watch, ended):
        received.extend(found)
        watch(found)
        for job in found:
            if job.name in codes:
                ended(job, codes[job.name])

    monkeypatch.setattr(execution, "run_jobs", run_jobs)
    return received, codes


def test_what_is_done_is_told_first_and_the_longest_of_the_rest_begins(tmp_path, jobs):
    made = plan(tmp_path, ["none", "liere8"], [0, 1], examples=200)
    pretend(made.runs[0].folder, "none", 0, 0.5, sizes=(36,))
    ended, watched = [], []
    execution.run_plan(made, watch=watched.extend, ended=ended.append, failed=pytest.fail)
    assert [run.folder.name for run in ended] == ["none-seed0"]
    assert [job.name for job in jobs[0]] == ["liere8-seed0", "liere8-seed1", "none-seed1"]
    assert watched == []  # none of them has a folder yet


def test_a_failure_is_told_with_the_last_line_of_the_log(tmp_path, jobs):
    made = plan(tmp_path, ["none"], [0, 1])
    jobs[1].update({"none-seed0": 1, "none-seed1": -9})
    log = made.runs[0].log_file
    log.parent.mkdir(parents=True)
    log.write_text("Traceback\n  ...\nValueError: no good\n\n")
    failed = []
    execution.run_plan(made, watch=lambda runs: None, ended=pytest.fail, failed=failed.append)
    assert failed == [
        f"none-seed0 failed with exit code 1 (ValueError: no good): see {log}",
        f"none-seed1 failed with exit code -9 (no output): see {made.runs[1].log_file}",
    ]


def test_of_a_long_log_only_the_end_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(execution, "LOG_BYTES", 10)
    (tmp_path / "log").write_text("first line\n" + 100 * "x" + "\nlast line\n")
    assert execution._last_line(tmp_path / "log") == "last line"


def test_lightning_is_not_imported_to_plan():
    code = "import sys, liere.comparison.execution; assert 'lightning' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
