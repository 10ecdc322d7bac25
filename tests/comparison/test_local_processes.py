"""Jobs in separate processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("tests.training.requirements")
from liere.comparison.execution import _ending_with

WORK = """
import time
from pathlib import Path

def work(folder, slot):
    Path(folder, "started").write_text("")
    while not slot.parent.poll():
        time.sleep(0.05)
    Path(folder, "parent is gone").write_text("")
"""
SCRIPT = """
import sys
from pathlib import Path
from liere.comparison.local_processes import Job, run_jobs
from work import {work}

job = Job("one", {work}, (sys.argv[1],), Path(sys.argv[1], "log"))
run_jobs([job], slots=1, watch=lambda running: None, ended=lambda job, code: print(code, __file__))
"""


def wait_for(path, seconds=60):
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} did not come"
        time.sleep(0.05)


def test_a_job_notices_that_its_parent_was_killed(tmp_path):
    (tmp_path / "work.py").write_text(WORK)
    (tmp_path / "script.py").write_text(SCRIPT.format(work="work"))
    process = subprocess.Popen([sys.executable, str(tmp_path / "script.py"), str(tmp_path)], cwd=tmp_path)
    wait_for(tmp_path / "started")
    assert not (tmp_path / "parent is gone").exists()
    os.kill(process.pid, signal.SIGKILL)  # not waited for: a zombie counts as gone, too
    wait_for(tmp_path / "parent is gone")
    process.wait()


def test_a_script_is_not_executed_again_in_the_processes_that_it_starts(tmp_path):
    """Scripts often start work without checking whether they are the main program."""
    (tmp_path / "work.py").write_text("def note(folder, slot):\n    print('noted')\n")
    (tmp_path / "script.py").write_text(SCRIPT.format(work="note"))
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.stdout, done.stderr) == (f"0 {tmp_path / 'script.py'}\n", "")
    assert (tmp_path / "log").read_text() == "noted\n"


def test_an_evaluation_ends_with_its_parent():
    code = (
        "import multiprocessing, time; from liere.comparison.execution import _ending_with\n"
        "parent, alive = multiprocessing.Pipe(duplex=False)\n"
        "with _ending_with(parent): time.sleep(0.8); print('lives', flush=True); alive.close(); time.sleep(100)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=90)
    assert (done.returncode, done.stdout) == (1, "lives\n")


def test_what_comes_after_an_evaluation_does_not_end_with_the_parent():
    parent, alive = multiprocessing.Pipe(duplex=False)
    with _ending_with(parent):
        pass
    alive.close()
    time.sleep(1)  # this process is still here
