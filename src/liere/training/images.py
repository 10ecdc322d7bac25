"""Images as a model takes them."""

from __future__ import annotations

from torch import Tensor

from liere.shapes import Float, UInt8

__all__ = ["to_float"]

MEAN, STD = 0.9, 0.3
"""Of the spatial task, roughly: most of an image is paper."""


def to_float(images: UInt8[Tensor, "batch channels *size"]) -> Float[Tensor, "batch channels *size"]:
    """Return images as a model takes them, from bytes."""
    return images.float().div_(255 * STD).sub_(MEAN / STD)
