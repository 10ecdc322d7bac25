from __future__ import annotations

import pytest

from liere.bench import race


@pytest.fixture
def hasty(monkeypatch):
    """Races in a hurry: no repeated turns, and no garbage collection, which takes long in a test run."""
    monkeypatch.setattr(race, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(race, "gc", type("NoCollection", (), {"collect": staticmethod(lambda: 0)}))
