"""Images, clips and volumes as pictures."""

from __future__ import annotations

import io

from torch import Tensor

from liere.shapes import UInt8

__all__ = ["flat_picture", "png"]


def flat_picture(image: Tensor, axes: int) -> UInt8[Tensor, "3 height width"]:
    """Return an RGB picture of an image, clip or volume: the middle frame or slice of the first clip.

    Args:
        image: `[channels, *size]`, or `[clips, channels, *size]`; uint8, or float, which is rescaled to 0-255.
        axes: Number of axes of `size`.

    Example:
        >>> import torch
        >>> flat_picture(torch.rand(2, 1, 5, 8, 8), axes=3).shape
        torch.Size([3, 8, 8])
    """
    if image.ndim > axes + 1:
        image = image[0]
    for _ in range(axes - 2):
        image = image[:, image.shape[1] // 2]
    if image.is_floating_point():
        low, high = image.aminmax()
        image = (255 * (image - low) / (high - low).clamp(min=1e-12)).round().byte()
    return image[:3] if len(image) >= 3 else image[:1].expand(3, -1, -1)


def png(image: UInt8[Tensor, "3 height width"]) -> bytes:
    """Return a picture as a PNG file."""
    from matplotlib.image import imsave

    file = io.BytesIO()
    imsave(file, image.permute(1, 2, 0).contiguous().numpy(), format="png")
    return file.getvalue()
