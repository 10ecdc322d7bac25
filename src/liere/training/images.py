"""Images as a model takes them."""

from __future__ import annotations

from torch import Tensor

from liere.shapes import Float, UInt8

__all__ = ["to_float"]


def to_float(
    images: UInt8[Tensor, "batch channels *size"], *, mean: float, std: float
) -> Float[Tensor, "batch channels *size"]:
    """Return images as a model takes them, from bytes.

    Args:
        images: From 0 to 255.
        mean: Of pixels in [0, 1]; it becomes 0.
        std: Standard deviation of pixels in [0, 1]; it becomes 1.

    Example:
        >>> import torch
        >>> to_float(torch.tensor([[[0, 255]]], dtype=torch.uint8), mean=0.5, std=0.25).tolist()
        [[[-2.0, 2.0]]]
    """
    return images.float().div_(255 * std).sub_(mean / std)
