"""Crops of pictures: random in training, centered in tests."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from liere.data.counter_random import random_bits
from liere.shapes import UInt8

__all__ = ["Box", "crop_middle", "crop_resize", "draw_box", "to_tensor", "uniform_numbers"]

Box = tuple[int, int, int, int]
"""Left, upper, right and lower edge in pixels."""

RATIOS = (3 / 4, 4 / 3)
ATTEMPTS = 10
BOX_DRAWS = 4 * ATTEMPTS
MOST_RESIZED = 2**25  # largest picture, in pixels, that is resized before it is cropped
MARGIN = 256 / 224  # length of the shorter side relative to the crop


def uniform_numbers(bits: int, count: int) -> list[float]:
    """Return numbers in [0, 1) that are determined by random bits.

    Example:
        >>> all(0 <= number < 1 for number in uniform_numbers(7, 100))
        True
    """
    draws = random_bits(torch.tensor([bits]), count)[0]
    return ((draws >> 11) & ((1 << 53) - 1)).double().mul(2.0**-53).tolist()


def draw_box(width: int, height: int, numbers: Sequence[float], min_area: float = 0.08) -> Box:
    """Return a random box as drawn by torchvision's `RandomResizedCrop`.

    Its share of the area is between `min_area` and 1, its aspect ratio between 3/4 and 4/3. If ten attempts do not fit,
    the result is the largest centered box with such an aspect ratio.

    Args:
        width: Width of the picture.
        height: Height of the picture.
        numbers: 40 random numbers in [0, 1).
        min_area: Minimum area as a fraction of the picture.

    Example:
        >>> draw_box(100, 50, [0.5] * 40, min_area=1.0)
        (16, 0, 83, 50)
    """
    for area, ratio, left, top in zip(*[iter(numbers[:BOX_DRAWS])] * 4, strict=True):
        pixels = width * height * (min_area + (1 - min_area) * area)
        aspect = math.exp(math.log(RATIOS[0]) + (math.log(RATIOS[1]) - math.log(RATIOS[0])) * ratio)
        w, h = round(math.sqrt(pixels * aspect)), round(math.sqrt(pixels / aspect))
        if 0 < w <= width and 0 < h <= height:
            x, y = int(left * (width - w + 1)), int(top * (height - h + 1))
            return x, y, x + w, y + h
    w = min(width, max(round(height * RATIOS[1]), 1))
    h = min(height, max(round(width / RATIOS[0]), 1))
    x, y = (width - w) // 2, (height - h) // 2
    return x, y, x + w, y + h


def crop_resize(picture: Image.Image, box: Box, size: int, *, mirrored: bool = False) -> Image.Image:
    """Return a part of a picture resized to a square of this size, mirrored left to right if `mirrored`."""
    part = picture.crop(box).resize((size, size), Image.Resampling.BILINEAR)
    return part.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else part


def crop_middle(picture: Image.Image, size: int) -> Image.Image:
    """Return the center crop of this size after resizing the shorter side to 256/224 of it.

    Example:
        >>> crop_middle(Image.new("RGB", (640, 480)), 224).size
        (224, 224)
    """
    short = round(size * MARGIN)
    width, height = picture.size
    if width <= height:
        width, height = short, int(short * height / width)
    else:
        width, height = int(short * width / height), short
    x, y = round((width - size) / 2), round((height - size) / 2)
    if width * height > MOST_RESIZED:  # a narrow strip would become huge, so crop it first
        steps = picture.width / width, picture.height / height
        box = (x * steps[0], y * steps[1], (x + size) * steps[0], (y + size) * steps[1])
        return picture.resize((size, size), Image.Resampling.BILINEAR, box)
    return picture.resize((width, height), Image.Resampling.BILINEAR).crop((x, y, x + size, y + size))


def to_tensor(picture: Image.Image) -> UInt8[Tensor, "3 height width"]:
    """Return an RGB picture as a tensor."""
    return torch.from_numpy(np.array(picture)).permute(2, 0, 1).contiguous()
