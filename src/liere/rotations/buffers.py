"""Memory that the kernels use again and again: to get new memory costs more than what is done with it."""

from __future__ import annotations

import math
import threading

import torch
from torch import Tensor

__all__ = ["LARGEST_KEPT", "MOST_KEPT", "drop_buffers", "take_buffer"]

LARGEST_KEPT = 2**23
"""Bytes; larger buffers are not kept."""
MOST_KEPT = 2**27
"""Bytes that are kept in all, by a thread."""

_kept = threading.local()


def take_buffer(key: int | str, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Return an empty tensor of the type and device of `like`, whose memory the next caller with this key gets, too.

    Each thread has its own. On other devices than the CPU memory is kept by torch already.
    """
    size = math.prod(shape) * like.element_size()
    if like.device.type != "cpu" or size > LARGEST_KEPT:
        return like.new_empty(shape)
    buffers: dict[int | str, Tensor] = _kept.__dict__.setdefault("buffers", {})
    if key not in buffers or buffers[key].numel() < size:
        if size + sum(buffer.numel() for buffer in buffers.values()) > MOST_KEPT:
            return like.new_empty(shape)
        with torch.inference_mode(False):  # or a training step could not write to it
            buffers[key] = torch.empty(size, dtype=torch.uint8)
    return buffers[key][:size].view(like.dtype).view(shape)


def drop_buffers() -> None:
    """Give the memory of this thread back."""
    _kept.__dict__.clear()
