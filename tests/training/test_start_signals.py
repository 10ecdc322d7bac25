"""How training ends after a signal, in the first process and in the others."""

from __future__ import annotations

import signal

import pytest

pytest.importorskip("tests.training.requirements")

from liere.runs.run import open_run
from liere.training import fit
from liere.training.start import SignalStop, train_run
from liere.training.stop_requests import StoppedError
from tests.training.tiny import make_run, quiet

pytestmark = quiet


def ignore(line: str) -> None:
    pass


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
    monkeypatch.setenv("LOCAL_RANK", "1")  # other processes exit silently with code 0
    two = open_run(run.folder, {"hardware.devices": "2"})
    with pytest.raises(SystemExit) as stop:
        train_run(two, tell=lines.append, warn=ignore)
    assert stop.value.code == 0
    assert len(lines) == 1
