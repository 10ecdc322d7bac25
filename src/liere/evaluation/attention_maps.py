"""Attention maps: the attention of the CLS token over the image, layer by layer."""

from __future__ import annotations

import io
from typing import Any

import torch
from torch import Tensor

from liere.errors import InputError
from liere.layers import Attention
from liere.shapes import Float, UInt8
from liere.vit import VisionTransformer

__all__ = ["cls_attention", "overlay_png", "rescaled"]


@torch.no_grad()
def cls_attention(
    model: VisionTransformer, images: Float[Tensor, "batch channels *size"]
) -> list[Float[Tensor, "batch *grid"]]:
    """Return the attention from CLS to each patch, averaged over heads, as one tensor per layer.

    Args:
        model: A model with a CLS token; call `eval()` on it before.
        images: Normalized images.

    Raises:
        ValueError: If the model has no CLS token.

    Example:
        >>> from liere import create_model
        >>> size = {"dim": 16, "depth": 3, "heads": 2, "mlp_dim": 16}
        >>> model = create_model(None, encoding="liere8", image_size=24, patch_size=12, num_classes=4, **size)
        >>> [tuple(layer.shape) for layer in cls_attention(model.eval(), torch.randn(5, 3, 24, 36))]
        [(5, 2, 3), (5, 2, 3), (5, 2, 3)]
    """
    if model.cls_token is None:
        raise InputError("attention maps need a CLS token, but the model has pool='mean': use a model with pool='cls'")
    seen: list[Tensor] = []

    def look(attention: Attention, arguments: tuple[Any, ...]) -> None:
        *inputs, scale = arguments
        q, _, _, k = attention.queries_keys_values(*inputs)
        scores = q[:, :, :1] @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
        seen.append(scores.float().softmax(-1).mean(1)[:, 0, model.num_prefix_tokens :])

    hooks = [module.register_forward_pre_hook(look) for module in model.modules() if isinstance(module, Attention)]
    try:
        model(images)
    finally:
        for hook in hooks:
            hook.remove()
    grid = [n // p for n, p in zip(images.shape[2:], model.patch_embed.patch_size, strict=True)]
    return [attention.unflatten(1, grid) for attention in seen]


def rescaled(attention: Float[Tensor, "*grid"]) -> Float[Tensor, "*grid"]:
    """Return a map rescaled to [0, 1]; a constant map becomes 0.

    Example:
        >>> rescaled(torch.tensor([[0.25, 0.75], [0.5, 0.75]])).tolist()
        [[0.0, 1.0], [0.5, 1.0]]
    """
    low, high = attention.min(), attention.max()
    return (attention - low) / (high - low) if high > low else torch.zeros_like(attention)


def overlay_png(image: UInt8[Tensor, "3 height width"], attention: Float[Tensor, "rows columns"]) -> bytes:
    """Return a PNG of an image with an overlaid map, from blue (least attention) to red (most)."""
    from matplotlib import colormaps
    from matplotlib.image import imsave

    height, width = image.shape[1:]
    rows, columns = attention.shape
    spread = rescaled(attention).repeat_interleave(height // rows, 0).repeat_interleave(width // columns, 1)
    heat = torch.from_numpy(colormaps["jet"](spread.numpy())[..., :3]).float()
    picture = image.permute(1, 2, 0).float() / 255
    # Dark parts of the image darken the color, so that they stay visible.
    blended = heat * (0.25 + 0.75 * picture)
    file = io.BytesIO()
    imsave(file, blended.clamp(0, 1).numpy(), format="png")
    return file.getvalue()
