"""A recipe in the current folder."""

from __future__ import annotations

import pytest


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    from tests.training.tiny import write_config

    monkeypatch.chdir(tmp_path)
    return write_config(tmp_path)
