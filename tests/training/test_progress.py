from __future__ import annotations

import re

import pytest

pytest.importorskip("tests.training.requirements")

from liere.data import SpatialReasoning
from liere.training.fit import train
from tests.training.tiny import make_run, quiet

pytestmark = quiet


class Clock:
    """A clock that a test moves, so that its results do not depend on the machine."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


def lines_of(run, monkeypatch, split: str) -> list[str]:
    """Train with one split that takes all of the time, one second per batch, and return the progress lines."""
    load, clock = SpatialReasoning.load, Clock()

    def slow_load(self, indices, bits=None):
        clock.now += self.split == split
        return load(self, indices, bits)

    monkeypatch.setattr(SpatialReasoning, "load", slow_load)
    monkeypatch.setattr("liere.training.progress.time", clock)
    monkeypatch.setattr("liere.terminal.progress.SECONDS_BETWEEN_LINES", 0.0)
    lines: list[str] = []
    train(run, say=lines.append)
    return [line for line in lines if "examples" in line]


def test_waiting_for_data_is_reported_if_it_is_long(tmp_path, monkeypatch):
    last = lines_of(make_run(tmp_path / "run"), monkeypatch, "train")[-1]
    (share,) = re.findall(r"(\d+) % of the time waiting for data \(hardware.workers\)", last)
    assert int(share) == 100 * 15 // 18  # not the first of 18 batches, nor those after the two validations


def test_a_slow_validation_is_no_waiting(tmp_path, monkeypatch):
    last = lines_of(make_run(tmp_path / "run"), monkeypatch, "val")[-1]
    assert "waiting" not in last
