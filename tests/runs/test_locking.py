from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("filelock")
from liere.runs.locking import file_lock, lock_folder

HOLD = """
import sys
from pathlib import Path
from liere.runs.locking import lock_folder
with lock_folder(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path):
    """Another process that holds the lock until its input ends."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def test_a_folder_is_for_one_process(tmp_path, other):
    with pytest.raises(ValueError, match="is in use by another process: wait for it or stop it"), lock_folder(tmp_path):
        raise AssertionError("it was not locked")


def test_a_process_that_is_killed_gives_it_back(tmp_path, other):
    other.kill()
    with lock_folder(tmp_path, patience=30):
        pass


def test_it_is_given_back_after_an_error(tmp_path):
    with pytest.raises(KeyError), lock_folder(tmp_path):
        raise KeyError
    with lock_folder(tmp_path):
        pass


@pytest.mark.parametrize("name", [".lock", "checkpoints", "predictions", "tensorboard"])
def test_a_link_out_of_the_run_is_refused(tmp_path, name):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=rf"{name} is a link, .*: delete it"), lock_folder(tmp_path / "run"):
        raise AssertionError("it was not refused")
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_lock_is_not_waited_for(tmp_path):
    with file_lock(tmp_path / "a"), pytest.raises(TimeoutError):
        file_lock(tmp_path / "a").acquire()
