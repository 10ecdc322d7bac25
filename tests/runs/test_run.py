"""A run appears with its configuration or not at all, and leftovers of killed starts are removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("tests.training.requirements")
import filelock

from liere.runs import run as runs
from liere.runs.run import create_run
from tests.training.tiny import make_run, quiet, stop_after

pytestmark = quiet


@pytest.mark.parametrize("kept", ["result.json", "final.safetensors", "checkpoints/new-last.ckpt"])
def test_a_start_is_only_repeated_where_nothing_was_saved(tmp_path, kept):
    run = make_run(tmp_path / "run")
    assert create_run(run.folder, run.config) == run
    with pytest.raises(ValueError, match="exists: resume it"):
        create_run(run.folder, make_run(tmp_path / "other", training__seed=5).config)
    (run.folder / kept).touch()
    with pytest.raises(ValueError, match="exists: resume it"):
        create_run(run.folder, run.config)


def test_a_run_appears_with_its_configuration_or_not_at_all(tmp_path, monkeypatch):
    config = make_run(tmp_path / "one").config
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        create_run(tmp_path / "two", config)
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_what_killed_starts_have_left_is_removed_and_nothing_else(tmp_path):
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        dead, alive = ended.pid, os.getpid()

    def leave(name: str, *content: str) -> str:
        for part in content:
            (tmp_path / name / part).mkdir(parents=True)
        return name

    leave(f".run.{alive}-11111111", "new")
    (tmp_path / f".run.{alive}-11111111" / ".lock").touch()  # killed; another process has its id now
    leave(f".run.{dead}-22222222", "new/checkpoints")  # killed before it had a lock
    kept = {
        leave(f".run.{alive}-33333333", "new"),  # has no lock yet
        leave(f".run.{dead}-44444444", "new"),
        leave(f".run.{dead}-55555555", "new", "mine"),
        leave(".run.backup-1", "new"),
        leave(".run.mine", "new"),
    }
    (tmp_path / f".run.{dead}-file_of_").touch()
    with filelock.FileLock(tmp_path / f".run.{dead}-44444444" / ".lock"):
        make_run(tmp_path / "run")
    assert {path.name for path in tmp_path.iterdir()} == {"run", *kept, f".run.{dead}-file_of_"}


def test_what_a_start_left_that_was_killed_after_the_folder_was_there_is_removed(tmp_path):
    run = make_run(tmp_path / "run")
    for number, again in enumerate((lambda: create_run(run.folder, run.config), lambda: stop_after(run, 1))):
        left = tmp_path / f".run.{os.getpid()}-1234567{number}"
        left.mkdir()
        (left / ".lock").touch()
        again()
        assert not left.exists()


def test_a_start_that_is_overtaken_by_another_goes_on_with_its_folder(tmp_path, monkeypatch):
    config, write = make_run(tmp_path / "other").config, runs.write_atomically

    def overtaken(path, content):
        monkeypatch.setattr(runs, "write_atomically", write)
        make_run(tmp_path / "run")
        write(path, content)

    monkeypatch.setattr(runs, "write_atomically", overtaken)
    assert create_run(tmp_path / "run", config).config == config
    assert {path.name for path in tmp_path.iterdir()} == {"run", "other"}


def test_a_signal_while_the_folder_is_made_leaves_nothing_beside_it(tmp_path):
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from liere_command.signals import leave_on_signals\n"
        "from liere.runs import run as runs; from liere.runs.config import RunConfig\n"
        "leave_on_signals(); replace = os.replace\n"
        "os.replace = lambda *names: (os.kill(os.getpid(), signal.SIGTERM), replace(*names))\n"
        "runs.create_run(Path(sys.argv[1]), RunConfig())\n"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "run"], check=False)
    assert done.returncode == 128 + signal.SIGTERM
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
