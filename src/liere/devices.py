"""Copies to a device that do not wait for it."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["send"]


def send(x: Tensor, device: torch.device | str, dtype: torch.dtype | None = None) -> Tensor:
    """Return a tensor on a device, like `x.to(device, dtype)`, without waiting for what the device has to do before.

    A copy from ordinary memory to a GPU waits until the GPU has done everything that was queued, because the memory may
    be freed afterwards. Memory that is pinned for the copy is not reused before the copy is done.

    Example:
        >>> send(torch.ones(2), "cpu", torch.float64)
        tensor([1., 1.], dtype=torch.float64)
    """
    device = torch.device(device)
    is_recorded = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined]
    if x.device.type != "cpu" or device.type != "cuda" or x.requires_grad or is_recorded:
        return x.to(device, dtype)
    return x.to(dtype=dtype).pin_memory().to(device, non_blocking=True)
