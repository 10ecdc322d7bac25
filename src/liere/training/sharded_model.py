"""A model whose parameters are sharded over the processes of a run, and its whole state for files."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from liere.sharding import gathered, sharded_like
from liere.vit import VisionTransformer

__all__ = ["is_sharded", "shard", "shard_optimizer_state", "whole_state_dict"]


def shard(model: VisionTransformer, mesh: Any) -> None:
    """Shard the parameters of a model with FSDP2: each layer by itself, and everything else together.

    The generators of all layers are gathered and their gradients averaged with the latter, once per step, because the
    rotations of all layers are computed from them before the first layer.

    Args:
        model: The model, whose parameters become shards.
        mesh: The `DeviceMesh` of the processes.
    """
    from torch.distributed.fsdp import fully_shard

    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)


def is_sharded(model: VisionTransformer) -> bool:
    """Return whether a model has been sharded."""
    return any(hasattr(parameter, "full_tensor") for parameter in model.parameters())


def whole_state_dict(model: VisionTransformer) -> dict[str, Tensor]:
    """Return the state dict of a model, gathered if it is sharded: then all processes must call this."""
    return {name: gathered(tensor.detach()) for name, tensor in model.state_dict().items()}


def shard_optimizer_state(optimizer: torch.optim.Optimizer, state: dict[int, Any]) -> dict[int, Any]:
    """Return the state of an optimizer with every tensor sharded like its parameter."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return {
        number: {
            name: sharded_like(value, parameters[number]) if value.shape == parameters[number].shape else value
            for name, value in entries.items()
        }
        for number, entries in state.items()
    }
