"""Tokens that show whether machines share storage, and tasks that can be sent to them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("tests.training.requirements")
from liere.comparison.executors import storage
from liere.comparison.executors.storage import check_not_memory, place_token


def test_a_machine_recognizes_the_folder_by_its_token(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "PATIENCE", 0.0)
    token = place_token(tmp_path / "new")
    token.check()
    token.file.write_text("of another comparison")
    with pytest.raises(
        ValueError, match=r"--out .*new is not the same folder on .* as here, but runs on other machines"
    ):
        token.check()
    token.remove()
    assert not token.is_visible()
    assert list((tmp_path / "new").iterdir()) == []


def test_memory_of_this_machine_is_refused(tmp_path):
    check_not_memory(tmp_path)
    shared_memory = Path("/dev/shm")
    if not shared_memory.is_dir():
        pytest.skip("no memory as a folder")
    with pytest.raises(ValueError, match="--out /dev/shm/x is in the memory of this machine"):
        check_not_memory(shared_memory / "x")
