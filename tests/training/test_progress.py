from __future__ import annotations

import re
import time

import pytest

pytest.importorskip("tests.training.requirements")

from liere.data import SpatialReasoning
from liere.training.fit import train
from tests.training.tiny import make_run, quiet

pytestmark = quiet


def lines_of(run, monkeypatch, seconds: float, split: str) -> list[str]:
    """Train with one slow split, and return the progress lines."""
    load = SpatialReasoning.load

    def slow_load(self, indices, bits=None):
        time.sleep(seconds if self.split == split else 0)
        return load(self, indices, bits)

    monkeypatch.setattr(SpatialReasoning, "load", slow_load)
    monkeypatch.setattr("liere.terminal.progress.SECONDS_BETWEEN_LINES", 0.0)
    lines: list[str] = []
    train(run, say=lines.append)
    return [line for line in lines if "examples" in line]


def test_waiting_for_data_is_reported_if_it_is_long(tmp_path, monkeypatch):
    last = lines_of(make_run(tmp_path / "run"), monkeypatch, 0.3, "train")[-1]
    (share,) = re.findall(r"(\d+) % of the time waiting for data \(hardware.workers\)", last)
    assert 40 < int(share) <= 100


def test_a_slow_validation_is_no_waiting(tmp_path, monkeypatch):
    last = lines_of(make_run(tmp_path / "run"), monkeypatch, 0.5, "val")[-1]
    assert "waiting" not in last
