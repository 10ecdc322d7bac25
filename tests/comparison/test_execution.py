"""Which runs of a plan are executed, in which order, and which callbacks are called."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("tests.training.requirements")
from liere.comparison import execution
from liere.runs.locking import lock_folder
from liere.runs.run import create_run
from liere_command.signals import SignalInterrupt
from tests.comparison.executors.fakes import FakeExecutor
from tests.comparison.plans import plan
from tests.evaluation.test_summary import pretend


def finish(task):
    config = task.planned.config
    pretend(task.planned.folder, config.model.encoding, config.training.seed, 0.5, sizes=(36,))


def test_what_is_done_is_told_first_and_the_longest_of_the_rest_begins(tmp_path):
    executor = FakeExecutor(make=finish)
    made = plan(tmp_path, ["none", "liere8"], [0, 1], examples=200, executor=executor, slots=2)
    pretend(made.runs[0].folder, "none", 0, 0.5, sizes=(36,))
    ended, watched = [], []
    execution.run_plan(made, watch=watched.extend, ended=ended.append, failed=pytest.fail)
    order = ["liere8-seed0", "liere8-seed1", "none-seed1"]
    assert [run.folder.name for run in ended] == ["none-seed0", *order]
    assert executor.calls == [("open", tmp_path, 2), ("submit", order), ("cancel", []), ("close",)]
    assert watched == []  # none of them had a folder while it was active


def test_nothing_is_opened_if_all_is_done(tmp_path):
    executor = FakeExecutor()
    made = plan(tmp_path, ["none"], examples=200, executor=executor)
    finish(type("Task", (), {"planned": made.runs[0]}))
    execution.run_plan(made, watch=pytest.fail, ended=lambda run: None, failed=pytest.fail)
    assert executor.calls == []


def test_a_failure_is_told_with_the_last_line_of_the_log_and_the_others_are_done(tmp_path):
    failures = {"none-seed0": "with exit code 1", "none-seed1": "because its process died"}
    executor = FakeExecutor(failures, finish)
    made = plan(tmp_path, ["none"], [0, 1, 2], examples=200, executor=executor)
    log = made.runs[0].log_file
    log.parent.mkdir(parents=True)
    log.write_text("Traceback\n  ...\nValueError: no good\n\n")
    failed, ended = [], []
    execution.run_plan(made, watch=lambda runs: None, ended=ended.append, failed=failed.append)
    assert failed == [
        f"none-seed0 failed with exit code 1 (ValueError: no good): see {log}",
        f"none-seed1 failed because its process died (no output): see {made.runs[1].log_file}",
    ]
    assert [run.folder.name for run in ended] == ["none-seed2"]


def test_a_run_that_ended_but_is_not_there_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(execution, "LATE_SECONDS", 0.0)
    failed = []
    made = plan(tmp_path, ["none"], executor=FakeExecutor())
    execution.run_plan(made, watch=lambda runs: None, ended=pytest.fail, failed=failed.append)
    assert failed[0].startswith("none-seed0 failed to show its results here: is the folder on shared storage? (no out")


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interruption_cancels_what_is_active(tmp_path, error):
    executor = FakeExecutor()
    made = plan(tmp_path, ["none"], [0, 1], executor=executor)

    def interrupt(running):
        raise error

    with pytest.raises(error):
        execution.run_plan(made, watch=interrupt, ended=pytest.fail, failed=pytest.fail)
    assert executor.calls[2:] == [("cancel", ["none-seed0", "none-seed1"]), ("close",)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_that_end_programs_cancel_what_is_active_and_are_named(tmp_path, number):
    executor, before = FakeExecutor(), signal.getsignal(number)
    made = plan(tmp_path, ["none"], [0, 1], executor=executor)
    with pytest.raises(SignalInterrupt) as stop:
        execution.run_plan(
            made, watch=lambda running: os.kill(os.getpid(), number), ended=pytest.fail, failed=pytest.fail
        )
    assert stop.value.signal == number
    assert executor.calls[2:] == [("cancel", ["none-seed0", "none-seed1"]), ("close",)]
    assert signal.getsignal(number) is before


def test_only_runs_that_have_begun_are_watched(tmp_path):
    """Others wait in the queue of a cluster, although their folder may exist from before."""
    made = plan(tmp_path, ["none"], [0, 1, 2], examples=200, executor=FakeExecutor(make=finish))
    watched = []
    create_run(made.runs[0].folder, made.runs[0].config)
    create_run(made.runs[1].folder, made.runs[1].config)

    class EnoughError(Exception):
        pass

    def watch(running):
        watched.extend(run.folder.name for run in running)
        raise EnoughError

    with pytest.raises(EnoughError), lock_folder(made.runs[1].folder):
        execution.run_plan(made, watch=watch, ended=pytest.fail, failed=pytest.fail)
    assert watched == ["none-seed1"]


def test_of_a_long_log_only_the_end_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(execution, "LOG_BYTES", 10)
    (tmp_path / "log").write_text("first line\n" + 100 * "x" + "\nlast line\n")
    assert execution._last_line(tmp_path / "log") == "last line"


def test_lightning_and_ray_are_not_imported_to_plan():
    code = (
        "import sys, liere.toolkit, liere.comparison.execution\n"
        "assert not {'lightning', 'ray', 'submitit'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
