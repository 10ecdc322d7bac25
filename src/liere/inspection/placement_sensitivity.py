"""How much the attention of each layer changes when only the placement of the grid changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from liere.errors import InputError
from liere.layers import Attention
from liere.shapes import Float
from liere.vit import VisionTransformer

__all__ = ["LayerChange", "attention_changes"]


@dataclass(frozen=True)
class LayerChange:
    """The fraction of attention that a layer moves to other tokens, from 0 (none) to 1 (all).

    Attributes:
        patches: Mean over the queries of patches, heads, images and offsets.
        prefix: The same for the queries of CLS and registers; None if there are none.
    """

    patches: float
    prefix: float | None


@torch.no_grad()
def attention_changes(
    model: VisionTransformer,
    images: Float[Tensor, "batch channels *size"],
    offsets: Sequence[tuple[float, ...]],
) -> list[LayerChange]:
    """Return how much the attention of each layer changes when the grid is moved.

    Each layer receives the same tokens as at the origin, so changes do not accumulate over layers. The change of a
    query is the total variation distance between its attention before and after the move. Attention that depends only
    on relative positions does not change.

    Args:
        model: A model in eval mode, whose encoding has coordinates.
        images: Input images.
        offsets: Offsets of the grid, in token steps on each axis.

    Raises:
        ValueError: If the encoding has no coordinates, the model is in train mode, or there are no offsets.

    Example:
        >>> from liere import create_model
        >>> size = {"dim": 16, "depth": 2, "heads": 2, "mlp_dim": 16}
        >>> model = create_model(encoding="rope_mixed", image_size=8, patch_size=2, num_classes=2, pool="mean", **size)
        >>> changes = attention_changes(model.eval(), torch.randn(1, 3, 8, 8), [(3, 5)])
        >>> [round(layer.patches, 5) for layer in changes]
        [0.0, 0.0]
    """
    if not model.encoding.has_coordinates:
        raise InputError(
            f"the encoding {type(model.encoding).__name__} has no coordinates to move: use a model with a rotary or "
            "sincos encoding"
        )
    if model.training or not offsets:
        raise InputError("attention_changes needs a model in eval mode and at least one offset: call model.eval()")
    layers = [module for module in model.modules() if isinstance(module, Attention)]
    seen = _arguments(model, layers, images)
    before = [_attention(layer, arguments) for layer, arguments in zip(layers, seen, strict=True)]
    totals = torch.zeros(len(layers), model.num_prefix_tokens + 1, dtype=torch.float64)
    at_origin = model.placement
    try:
        for offset in offsets:
            model.placement = tuple(offset)
            moved = _arguments(model, layers, images)
            for number, layer in enumerate(layers):
                tokens, rotations = seen[number][0], moved[number][1]
                after = _attention(layer, (tokens, rotations, *seen[number][2:]))
                change = (after - before[number]).abs().sum(-1).mean((0, 1)) / 2  # one number per query
                prefix = model.num_prefix_tokens
                totals[number] += torch.cat([change[:prefix], change[prefix:].mean(0, keepdim=True)]).cpu()
    finally:
        model.placement = at_origin
    return [
        LayerChange(mean[-1].item(), mean[:-1].mean().item() if len(mean) > 1 else None)
        for mean in totals / len(offsets)
    ]


def _arguments(model: VisionTransformer, layers: list[Attention], images: Tensor) -> list[tuple[Any, ...]]:
    """Return the arguments with which each layer is called."""
    seen: list[tuple[Any, ...]] = []
    hooks = [layer.register_forward_pre_hook(lambda _, arguments: seen.append(arguments)) for layer in layers]
    try:
        model(images)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def _attention(layer: Attention, arguments: tuple[Any, ...]) -> Float[Tensor, "batch heads tokens tokens"]:
    tokens, rotations, prefix, scale = arguments
    q, k, _, plain_k = layer.queries_keys_values(tokens, rotations, prefix)
    scores = torch.cat([q[:, :, :prefix] @ plain_k.mT, q[:, :, prefix:] @ k.mT], dim=2)
    return (scores * (q.shape[-1] ** -0.5 if scale is None else scale)).double().softmax(-1)
