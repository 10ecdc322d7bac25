"""Normalization of images for a model."""

from __future__ import annotations

from torch import Tensor

from liere.shapes import Float

__all__ = ["to_float"]


def to_float(
    images: Tensor, *, mean: Float[Tensor, "channels"], std: Float[Tensor, "channels"]
) -> Float[Tensor, "batch channels *size"]:
    """Return float images normalized to mean 0 and standard deviation 1.

    Args:
        images: `[batch, channels, *size]`, uint8 from 0 to 255, or float.
        mean: Mean of each channel, with uint8 pixels scaled to [0, 1] and float pixels unchanged.
        std: Standard deviation of each channel, likewise.

    Example:
        >>> import torch
        >>> bytes_ = torch.tensor([[[0, 255]]], dtype=torch.uint8)
        >>> to_float(bytes_, mean=torch.tensor([0.5]), std=torch.tensor([0.25])).tolist()
        [[[-2.0, 2.0]]]
    """
    shape = (-1, *[1] * (images.ndim - 2))
    shift = (mean / std).view(shape)
    if images.is_floating_point():
        return images.float().div(std.view(shape)).sub_(shift)
    return images.float().div_(255 * std.view(shape)).sub_(shift)  # `float` returned a copy, so in-place is safe
