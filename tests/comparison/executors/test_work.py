"""What the process of a run does, on any executor."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("tests.training.requirements")
from liere.comparison.executors.contract import Task
from liere.comparison.executors.resources import alone
from liere.comparison.executors.work import FAILED, STOPPED, work
from liere.runs.run import create_run
from liere.training.stop_requests import StopRequest
from liere_command.processes import is_first_process
from liere_command.signals import SIGNALS, block_signals
from tests.comparison.plans import plan
from tests.runs.test_locking import HOLD
from tests.training.tiny import quiet

pytestmark = quiet


def test_a_run_is_stopped_resumed_and_tested_with_all_output_in_its_log(tmp_path, capfd):
    (run,) = plan(tmp_path, examples=8).runs
    assert work(Task(run), StopRequest(further_steps=4)) == STOPPED
    assert not run.is_trained()
    before = sys.stdout, sys.stderr
    assert work(Task(run), StopRequest()) == 0
    assert (sys.stdout, sys.stderr) == before
    assert run.is_done()
    os.write(1, b"afterwards\n")
    assert capfd.readouterr() == ("afterwards\n", "")
    lines = run.log_file.read_text().splitlines()
    assert "stopped as requested" in lines
    assert "none-seed0: resuming after step 4 of 9" in lines
    assert lines[-1].startswith("none-seed0: 36 px: accuracy")


def test_a_signal_that_came_while_the_process_was_starting_stops_the_run(tmp_path):
    (run,) = plan(tmp_path, examples=8).runs
    with block_signals():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        signal.raise_signal(signal.SIGINT)  # to this thread: others do not block it
        assert work(Task(run), StopRequest()) == STOPPED
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before >= set(SIGNALS)
    assert run.log_file.read_text().splitlines() == ["stopped"]


def test_a_process_that_waits_for_its_run_ends_with_its_parent(tmp_path):
    (planned,) = plan(tmp_path).runs
    create_run(planned.folder, planned.config)
    parent, alive = multiprocessing.Pipe(duplex=False)
    alive.close()
    command = [sys.executable, "-c", HOLD, str(planned.folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "locked\n"
        begin = time.monotonic()
        assert work(Task(planned), StopRequest(parent=parent)) == STOPPED
        assert time.monotonic() - begin < 20  # and not until patience ends
        assert planned.log_file.read_text().splitlines()[-1] == "stopped because its parent is gone"
        other.kill()


@pytest.mark.parametrize(
    ("error", "last"), [(ValueError, "ValueError: no good"), (KeyboardInterrupt, "stopped no good")]
)
def test_errors_end_the_log(tmp_path, monkeypatch, error, last):
    (run,) = plan(tmp_path).runs

    def fail(*_, **__):
        raise error("no good")

    monkeypatch.setattr("liere.training.fit.train", fail)
    assert work(Task(run), StopRequest()) == (FAILED if error is ValueError else STOPPED)
    assert run.log_file.read_text().splitlines()[-1] == last


def test_a_process_that_was_started_as_one_of_many_is_alone_with_its_run(monkeypatch):
    """As where a Ray cluster was started by srun, which numbers its machines."""
    for name, value in {"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "WORLD_SIZE": "4", "RANK": "3"}.items():
        monkeypatch.setenv(name, value)
    assert not is_first_process()
    with alone():
        assert is_first_process()
        assert "SLURM_NTASKS" not in os.environ
    assert os.environ["SLURM_NTASKS"] == "4"
