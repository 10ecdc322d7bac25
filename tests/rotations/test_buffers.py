from __future__ import annotations

import threading

import pytest
import torch

from liere.rotations import buffers
from liere.rotations.buffers import drop_buffers, take_buffer

LIKE = torch.zeros(1)


@pytest.fixture(autouse=True)
def _nothing_kept():
    drop_buffers()
    yield
    drop_buffers()


def test_memory_is_used_again_and_grows_where_it_must():
    first = take_buffer("a", (4, 5), LIKE)
    assert take_buffer("a", (2, 3), LIKE).data_ptr() == first.data_ptr()
    assert take_buffer("a", (2, 3), LIKE.double()).dtype == torch.float64
    assert take_buffer("b", (4, 5), LIKE).data_ptr() != first.data_ptr()
    assert take_buffer("a", (50, 50), LIKE).shape == (50, 50)


def test_what_is_kept_has_bounds(monkeypatch):
    monkeypatch.setattr(buffers, "LARGEST_KEPT", 400)
    monkeypatch.setattr(buffers, "MOST_KEPT", 1000)
    for key in range(5):
        assert take_buffer(key, (100,), LIKE).shape == (100,)
    take_buffer("large", (101,), LIKE)
    kept = buffers._kept.buffers
    assert "large" not in kept
    assert sum(buffer.numel() for buffer in kept.values()) <= 1000
    drop_buffers()
    assert not buffers._kept.__dict__


def test_each_thread_has_its_own():
    mine, theirs = take_buffer("a", (4,), LIKE), []
    thread = threading.Thread(target=lambda: theirs.append(take_buffer("a", (4,), LIKE)))
    thread.start()
    thread.join()
    assert theirs[0].data_ptr() != mine.data_ptr()
