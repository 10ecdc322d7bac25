"""Parameters that are sharded over processes, as `torch.distributed.fsdp.fully_shard` does."""

from __future__ import annotations

import sys
from typing import cast

from torch import Tensor, nn

__all__ = ["gathered", "memory_may_be_reused", "sharded_like"]


def gathered(parameter: Tensor) -> Tensor:
    """Return a parameter as an ordinary tensor: itself, or all shards if it is sharded (a `DTensor`).

    FSDP gathers the parameters of a module around its `forward`, so this matters for calls of other methods. Gradients
    are averaged over the processes and sharded again, as those of FSDP are.

    Example:
        >>> import torch
        >>> weight = nn.Parameter(torch.zeros(3))
        >>> gathered(weight) is weight
        True
    """
    if type(parameter) in (Tensor, nn.Parameter) or not hasattr(parameter, "full_tensor"):
        return parameter
    from torch.distributed.tensor import DTensor, Partial

    parameter = cast(DTensor, parameter)
    mesh = parameter.device_mesh
    whole = parameter.full_tensor(grad_placements=[Partial()] * mesh.ndim)
    if whole.requires_grad:
        whole.register_hook(lambda gradient: gradient / mesh.size())  # gloo can sum but not average
    return whole


def sharded_like(whole: Tensor, parameter: Tensor) -> Tensor:
    """Return this process's part of a tensor that all processes have, if a parameter of the same shape is sharded.

    Example:
        >>> import torch
        >>> whole = torch.zeros(3)
        >>> sharded_like(whole, nn.Parameter(torch.zeros(3))) is whole
        True
    """
    if not hasattr(parameter, "full_tensor"):
        return whole
    from torch.distributed.tensor import DTensor, Replicate

    mesh = cast(DTensor, parameter).device_mesh
    everywhere = DTensor.from_local(whole.to(parameter.device), mesh, [Replicate()] * mesh.ndim, run_check=False)
    return everywhere.redistribute(placements=cast(DTensor, parameter).placements)


def memory_may_be_reused() -> bool:
    """Return whether parameters may change without a new address or version, because FSDP gathers them in place."""
    return "torch.distributed.fsdp._fully_shard" in sys.modules
