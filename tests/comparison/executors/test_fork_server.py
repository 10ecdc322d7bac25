"""The process that others are forked from, and what is left of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("tests.training.requirements")

SCRIPT = """
import multiprocessing, signal, time
from multiprocessing.forkserver import _forkserver
from liere.comparison.executors.fork_server import ForkServer

def ends(process):
    process.start()
    process.terminate()
    process.join(20)
    return process.exitcode

others = multiprocessing.get_context("forkserver")
if __name__ == "__main__":
    server = ForkServer(["json"])
    process = server.context.Process(target=time.sleep, args=(0.1,))
    server.start(process)
    process.terminate()  # waits, because it is blocked
    process.join()
    print(process.exitcode, _forkserver._preload_modules)
    server.stop()
    print(_forkserver._forkserver_pid, _forkserver._preload_modules)
    print(ends(others.Process(target=time.sleep, args=(60,))))
    again = ForkServer(["json"])  # the program has one of its own
    again.stop()
    print(ends(others.Process(target=time.sleep, args=(60,))))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, processes are not forked")
def test_signals_are_blocked_only_in_its_own_processes(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["0 ['json']", "None ['__main__']", "-15", "-15"], done.stderr
