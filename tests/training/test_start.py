"""What is done before the first step, and how training ends."""

from __future__ import annotations

import signal

import pytest

pytest.importorskip("tests.training.requirements")

from liere.training import fit, start
from liere.training.saving import StoppedError
from liere.training.start import SignalStop, begin_run, train_run
from tests.training.tiny import make_run, quiet

pytestmark = quiet


def ignore(line: str) -> None:
    pass


def test_further_processes_wait_for_the_first_one(tmp_path, monkeypatch):
    config = make_run(tmp_path / "run").config
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setattr(start, "PATIENCE", 0.0)
    run = begin_run(config, tmp_path / "run", ignore)
    assert run is not None
    assert run.config == config
    with pytest.raises(FileNotFoundError, match=r"the first process has not made .* in 0 s: is the folder shared"):
        begin_run(config, tmp_path / "nowhere", ignore)
    assert begin_run(config, tmp_path / "nowhere", ignore, dry=True) is None


def test_a_signal_is_an_interruption_that_says_how_to_resume(tmp_path, monkeypatch):
    def train(run, request, **_):
        request.signal = signal.SIGTERM
        raise StoppedError("by SIGTERM")

    monkeypatch.setattr(fit, "train", train)
    run, lines = make_run(tmp_path / "run"), []
    (run.checkpoints / "last.ckpt").touch()
    with pytest.raises(KeyboardInterrupt) as stop:
        train_run(run, tell=lines.append, warn=ignore)
    assert isinstance(stop.value, SignalStop)
    assert stop.value.signal == signal.SIGTERM
    assert lines == [f"run: stopped by SIGTERM; resume with: liere train --resume {run.folder}"]
    assert str(stop.value) == lines[0]
    monkeypatch.setenv("LOCAL_RANK", "1")  # another process ends without a word, as if all were well
    with pytest.raises(SystemExit) as stop:
        train_run(run, tell=lines.append, warn=ignore)
    assert stop.value.code == 0
    assert len(lines) == 1


def test_a_logger_is_passed_on_only_if_there_is_one(tmp_path, monkeypatch):
    given = []

    def train(run, **options):
        given.append(options.get("logger", "none"))
        raise StoppedError("as asked")

    monkeypatch.setattr(fit, "train", train)
    run, logger = make_run(tmp_path / "run"), object()
    train_run(run, tell=ignore, warn=ignore)
    train_run(run, tell=ignore, warn=ignore, logger=logger)
    assert given == ["none", logger]
