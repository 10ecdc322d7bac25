"""Whether the values of a tensor may be looked at."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["values_are_visible"]


def values_are_visible(x: Tensor) -> bool:
    """Return whether Python may branch on the values of `x`.

    It may not while `torch.compile`, `torch.export`, `torch.jit.trace` or `torch.func` transforms record what is
    done with the tensor, nor for tensors without data (`meta`).
    """
    return not (
        torch.compiler.is_compiling()
        or torch.jit.is_tracing()  # type: ignore[attr-defined]
        or x.device.type == "meta"
        or type(x) not in (Tensor, nn.Parameter)  # fake and wrapped tensors are subclasses
        or torch._C._functorch.is_functorch_wrapped_tensor(x)
    )
