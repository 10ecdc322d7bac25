"""The optimizer and its learning-rate schedule."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from liere.runs.optimizer_config import OptimizerConfig
from liere.training.muon import Muon
from liere.vit import VisionTransformer

__all__ = ["kept_shapes", "learning_rate_factor", "make_optimizer"]


def learning_rate_factor(step: int, *, total_steps: int, warmup_steps: int) -> float:
    """Return the learning-rate factor of a step: linear warm-up to 1, then cosine decay to 0.

    Args:
        step: Step, from 0 to `total_steps` - 1.
        total_steps: Steps of the whole run.
        warmup_steps: Steps of the warm-up; the step after them has the full rate.

    Example:
        >>> [round(learning_rate_factor(step, total_steps=6, warmup_steps=2), 2) for step in range(6)]
        [0.33, 0.67, 1.0, 0.85, 0.5, 0.15]
    """
    if step < warmup_steps:
        return (step + 1) / (warmup_steps + 1)
    return 0.5 * (1 + math.cos(math.pi * (step - warmup_steps) / max(total_steps - warmup_steps, 1)))


def make_optimizer(model: VisionTransformer, config: OptimizerConfig) -> torch.optim.Optimizer:
    """Return the optimizer of a model: Adam, or Muon for the matrices of the layers and Adam for the rest.

    Without `muon_for_qkv`, the query, key and value projections also use Adam.

    Generators may have their own learning rate. Weight decay is decoupled and not applied to vectors and to the
    parameters in the model's `no_weight_decay`.
    """
    spared = model.no_weight_decay()
    groups: dict[tuple[float, float, int], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        decay = config.weight_decay if parameter.ndim > 1 and name not in spared else 0.0
        rate, blocks = config.learning_rate, 0
        if "generators" in name:
            rate = config.generator_learning_rate or rate
        elif config.name == "muon" and name.startswith("blocks.") and parameter.ndim == 2:
            makes_qkv = name.endswith("attention.qkv.weight")
            if config.muon_for_qkv or not makes_qkv:
                rate, blocks = config.matrix_rate, 3 if makes_qkv else 1
        groups.setdefault((rate, decay, blocks), []).append(parameter)
    described: list[dict[str, Any]] = [
        {"params": params, "lr": rate, "weight_decay": decay, "matrix_blocks": blocks}
        for (rate, decay, blocks), params in groups.items()
    ]
    kind = Muon if config.name == "muon" else _FusedAdamW
    return kind(described, betas=config.betas, eps=config.eps, fused=True)


class _FusedAdamW(torch.optim.AdamW):
    """AdamW in one pass over all parameters, which leaves the scaling of gradients to others.

    Without that, Lightning refuses to clip gradients in mixed precision, even in bf16, which needs no scaling.
    """

    _step_supports_amp_scaling = property(lambda self: False, lambda self, value: None)


def kept_shapes(optimizer: torch.optim.Optimizer) -> list[dict[str, torch.Size]]:
    """Return the shapes of the state of each parameter in an optimizer of `make_optimizer` after its first step."""
    return [
        {"momentum": parameter.shape}
        if group["matrix_blocks"]
        else {"step": torch.Size(), "exp_avg": parameter.shape, "exp_avg_sq": parameter.shape}
        for group in optimizer.param_groups
        for parameter in group["params"]
    ]
