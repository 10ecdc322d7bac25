"""The order of processes that start at the same time."""

from __future__ import annotations

from datetime import timedelta

import pytest

pytest.importorskip("tests.training.requirements")

from liere.runs import process_order
from liere.runs.hardware_config import HardwareConfig
from liere.runs.process_order import first_process_first, starts_together

TWO = HardwareConfig(accelerator="cpu", devices=2)


@pytest.fixture
def rank(monkeypatch):
    """Pretend to be a process of torchrun, which shares a store with others."""
    dist = pytest.importorskip("torch.distributed")
    store = dist.HashStore()
    store.set_timeout(timedelta(seconds=5))
    monkeypatch.setattr(process_order, "_store", store)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")

    def pretend(number: int):
        monkeypatch.setattr(process_order, "_numbers", iter(range(100)))
        monkeypatch.setenv("RANK", str(number))
        return store

    return pretend


def test_processes_that_start_together_wait_for_the_first(rank):
    rank(1)
    waits = []

    def check() -> None:
        waits.append(None)
        if len(waits) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), first_process_first(TWO, check):
        pytest.fail("did not wait")
    rank(0)
    with first_process_first(TWO):
        pass
    rank(1)
    with first_process_first(TWO, check):
        waits.append("done")
    assert waits == [None, None, "done"]


def test_each_block_is_waited_for(rank):
    rank(0)
    with first_process_first(TWO):
        pass
    rank(1)
    with first_process_first(TWO):
        pass
    with pytest.raises(ZeroDivisionError), first_process_first(TWO, lambda: 1 / 0):
        pytest.fail("did not wait")


def test_a_first_process_that_fails_lets_nobody_pass(rank):
    store = rank(0)
    with pytest.raises(ValueError, match="failed"), first_process_first(TWO):
        raise ValueError("failed")
    assert store.num_keys() == 0
    rank(1)

    def gone(keys):
        raise RuntimeError("Connection reset by peer")

    store = type("Gone", (), {"check": staticmethod(gone)})()
    process_order._store = store
    with pytest.raises(ConnectionError, match="the first process of the run has ended"), first_process_first(TWO):
        pytest.fail("did not wait")


def test_nobody_waits_where_the_first_process_starts_the_others(rank, monkeypatch):
    rank(1)
    assert starts_together(TWO)
    assert not starts_together(HardwareConfig(accelerator="cpu"))
    monkeypatch.delenv("TORCHELASTIC_RUN_ID")
    assert not starts_together(TWO)
    with first_process_first(TWO):
        pass
