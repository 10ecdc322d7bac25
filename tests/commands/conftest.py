"""Fixtures for commands: a temporary folder with a tiny configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from liere.cli import main
from tests.commands.folders import everything


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Write the tiny configuration to the working directory of the commands."""
    from tests.training.tiny import write_config

    monkeypatch.chdir(tmp_path)
    return write_config(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return a run that is trained but not evaluated."""
    from liere.training import fit
    from tests.training.tiny import make_run

    run = make_run(tmp_path_factory.mktemp("cli") / "finished", training__examples=8)
    fit.train(run, say=print)
    return run


@pytest.fixture
def fail(tmp_path, capsys, no_shape_checks):
    """Run a command that must fail with one line and exit code 2, without changing any files."""

    def call(*arguments: str | Path) -> str:
        before = everything(tmp_path)
        words = [[str(part)] if isinstance(part, Path) else part.split() for part in arguments]
        try:
            code = main([word for part in words for word in part])
        except SystemExit as stop:
            code = stop.code
        error = capsys.readouterr().err
        assert code == 2, error
        assert error.startswith("liere: error: ")
        assert error.count("\n") == 1
        assert error.endswith("\n")
        assert everything(tmp_path) == before
        return error

    return call
