"""Memory that the kernels reuse: allocating new memory costs more than the computation in it."""

from __future__ import annotations

import math
import threading

import torch
from torch import Tensor

__all__ = ["LARGEST_KEPT", "MOST_KEPT", "drop_buffers", "take_buffer"]

LARGEST_KEPT = 2**23
"""Maximum size in bytes of a buffer that is kept."""
MOST_KEPT = 2**27
"""Maximum total size in bytes of the buffers kept by a thread."""

_kept = threading.local()


def take_buffer(key: int | str, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Return an uninitialized tensor of the dtype and device of `like`; the next call with this key reuses its memory.

    Each thread has its own buffers. On devices other than the CPU, torch already reuses memory.
    """
    size = math.prod(shape) * like.element_size()
    if like.device.type != "cpu" or size > LARGEST_KEPT:
        return like.new_empty(shape)
    buffers: dict[int | str, Tensor] = _kept.__dict__.setdefault("buffers", {})
    if key not in buffers or buffers[key].numel() < size:
        if size + sum(buffer.numel() for buffer in buffers.values()) > MOST_KEPT:
            return like.new_empty(shape)
        with torch.inference_mode(False):  # otherwise a training step could not write to it
            buffers[key] = torch.empty(size, dtype=torch.uint8)
    return buffers[key][:size].view(like.dtype).view(shape)


def drop_buffers() -> None:
    """Free the buffers of this thread."""
    _kept.__dict__.clear()
