from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from torch.distributed import DistNetworkError

from liere.runs.config_file import parse_config
from liere.runs.other_processes import name_lost_processes, shield_new_processes
from liere.runs.run import Run

CODE = """
import os, subprocess, sys, threading, time
from pathlib import Path
from types import SimpleNamespace
from liere.runs.other_processes import ending_with_new_processes
from liere_command.signals import leave_on_signals

def start():
    launcher.procs = [subprocess.Popen([sys.executable, "-c", sys.argv[1]])]

launcher = SimpleNamespace(_call_children_scripts=start)
run = SimpleNamespace(folder=Path("runs/tiny"))
trainer = SimpleNamespace(strategy=SimpleNamespace(launcher=launcher))
leave_on_signals()
with ending_with_new_processes(trainer, run, "evaluate again"):
    launcher._call_children_scripts()
    if sys.argv[2] == "signal":
        os.kill(os.getpid(), 15)
    if sys.argv[2] == "within":
        while threading.active_count() > 1:  # until the watching thread has seen the end
            time.sleep(0.01)
launcher.procs[0].wait()
time.sleep(0.2)
print("lives")
"""


def test_new_processes_begin_with_signals_kept():
    masks = []
    launcher = SimpleNamespace(
        _call_children_scripts=lambda: masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    )
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    shield_new_processes(SimpleNamespace(strategy=SimpleNamespace(launcher=launcher)))
    launcher._call_children_scripts()
    assert masks == [before | {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    shield_new_processes(SimpleNamespace(strategy=SimpleNamespace(launcher=None)))


@pytest.mark.parametrize("ending", ["import os; os.kill(os.getpid(), 9)", "raise SystemExit(2)", "pass"])
def test_a_process_ends_with_those_that_it_started_unless_they_succeed(ending):
    done = subprocess.run([sys.executable, "-c", CODE, ending, "within"], capture_output=True, text=True, check=False)
    line = "liere: error: tiny: another process of the run has ended, see its message; evaluate again\n"
    assert (done.returncode, done.stdout, done.stderr) == ((0, "lives\n", "") if ending == "pass" else (2, "", line))


def test_a_process_outlives_those_that_end_after_the_work():
    words = [sys.executable, "-c", CODE, "import time; time.sleep(0.5); raise SystemExit(2)", "after"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "lives\n", "")


def test_a_process_that_a_signal_ends_kills_those_that_it_started():
    words = [sys.executable, "-c", CODE, "import time; time.sleep(100)", "signal"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)  # ends when both have
    assert done.returncode == 143
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "size", "expected"),
    [
        (RuntimeError("[gloo/pair.cc:534] Connection closed by peer [127.0.0.1]:1"), 2, ConnectionError),
        (DistNetworkError("Failed to recv, got 0 bytes."), 2, ConnectionError),
        (RuntimeError("Connection closed by peer"), 1, RuntimeError),
        (RuntimeError("other"), 2, RuntimeError),
    ],
)
def test_an_error_about_a_lost_process_is_one_line(error, size, expected):
    config = parse_config({"data": {"name": "spatial"}, "hardware": {"devices": size, "accelerator": "cpu"}})
    run = Run(Path("runs/tiny"), config)
    with pytest.raises(expected) as raised, name_lost_processes(run, "evaluate again"):
        raise error
    named = "tiny: another process of the run has ended, see its message; evaluate again"
    assert str(raised.value) == (named if expected is ConnectionError else str(error))
