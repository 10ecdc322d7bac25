"""Runs in processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("tests.training.requirements")
from liere.comparison.executors.local import LocalExecutor, _ending_with
from liere.runs.run import open_run
from tests.comparison.plans import plan, spoil
from tests.training.tiny import CONFIG, write_config

SCRIPT = """
import sys
from pathlib import Path
import yaml
from liere.comparison.execution import run_plan
from liere.comparison.plan import make_plan

plan = make_plan(
    yaml.safe_load(Path("tiny.yaml").read_text()), {}, encodings=["none"], seeds=[0], sizes=None, examples=8,
    folder=Path("out"), slots=1,
)
run_plan(plan, watch=lambda runs: None, ended=lambda run: print(run.folder.name), failed=print)
"""


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def script(tmp_path):
    """Start a script that executes one run, in a folder of its own."""

    def start(config):
        write_config(tmp_path, config)
        (tmp_path / "script.py").write_text(SCRIPT)
        command = [sys.executable, str(tmp_path / "script.py")]
        return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


def test_a_run_notices_that_its_parent_was_killed(tmp_path, script):
    process = script(CONFIG.replace("examples: 72", "examples: 1_000_000"))
    folder = tmp_path / "out" / "runs" / "none-seed0"
    wait_for(lambda: (folder / "config.yaml").exists() and any(open_run(folder).metric_rows()))
    os.kill(process.pid, signal.SIGKILL)  # not waited for: a zombie counts as gone, too
    log = folder.with_name("none-seed0.log")
    wait_for(lambda: "stopped because its parent is gone" in log.read_text())
    process.communicate()
    assert (folder / "checkpoints" / "last.ckpt").exists()


def test_a_script_is_not_executed_again_in_the_processes_that_it_starts(tmp_path, script, monkeypatch):
    """Scripts often start work without checking whether they are the main program."""
    monkeypatch.chdir(tmp_path)
    reason = spoil(plan(Path("out")).runs[0])
    out, error = script(CONFIG).communicate()
    assert (out, error) == (f"none-seed0 failed with exit code 1 ({reason}): see out/runs/none-seed0.log\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_signals_wait_while_the_process_that_others_are_forked_from_is_starting(script):
    process = script(CONFIG)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")

    def servers():
        return [int(pid) for pid in children.read_text().split() if b"forkserver" in command_of(pid)]

    wait_for(lambda: process.poll() is not None or servers())
    (server,) = servers()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(server, number)
    out, error = process.communicate()
    assert (out, error) == ("none-seed0\n", "")


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


def test_an_evaluation_ends_with_its_parent():
    code = (
        "import multiprocessing, time; from liere.comparison.executors.local import _ending_with\n"
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


def test_it_says_how_many_processes_there_are(tmp_path):
    executor = LocalExecutor()
    assert executor.describe(tmp_path, [], 1) == ["Runs are executed on this machine, one process."]
    assert executor.describe(tmp_path, [], 3) == ["Runs are executed on this machine, 3 processes at a time."]
