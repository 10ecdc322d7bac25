"""Jobs in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("tests.training.requirements")
from liere.comparison.plan import _ending_with

SCRIPT = """
import sys, time
from pathlib import Path
from liere.comparison.local_processes import Job, run_jobs

def work(folder, slot):
    Path(folder, "started").write_text("")
    while not slot.parent.poll():
        time.sleep(0.05)
    Path(folder, "parent is gone").write_text("")

if __name__ == "__main__":
    job = Job("one", work, (sys.argv[1],), Path(sys.argv[1], "log"))
    run_jobs([job], slots=1, watch=lambda running: None, ended=lambda job, code: None)
"""


def wait_for(path, seconds=60):
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} did not come"
        time.sleep(0.05)


def test_a_job_notices_that_its_parent_was_killed(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    process = subprocess.Popen([sys.executable, str(tmp_path / "script.py"), str(tmp_path)], cwd=tmp_path)
    wait_for(tmp_path / "started")
    assert not (tmp_path / "parent is gone").exists()
    os.kill(process.pid, signal.SIGKILL)  # not waited for: even a zombie is gone
    wait_for(tmp_path / "parent is gone")
    process.wait()


def test_an_evaluation_ends_with_its_parent():
    code = (
        "import multiprocessing, time; from liere.comparison.plan import _ending_with\n"
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
