"""Whether the values of a tensor may be looked at."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["values_are_visible"]


def values_are_visible(x: Tensor) -> bool:
    """Return whether Python may branch on the values of `x`.

    It may not while `torch.compile`, `torch.export`, `torch.jit.trace` or `torch.func` transforms record what is
    done with the tensor, nor for tensors without data (`meta`).
    """
    return not (
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or x.device.type == "meta"
        or torch._C._functorch.is_functorch_wrapped_tensor(x)
        or torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None
    )
