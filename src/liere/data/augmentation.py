"""Augmentation of training images as a function of random bits, identical for any number of workers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from liere.data.counter_random import random_below, random_bits
from liere.data.facts import DataFacts
from liere.errors import InputError
from liere.optional.torchvision_ops import import_with_torchvision
from liere.shapes import Int

__all__ = ["Augmentation", "check_rand_augment", "rand_augment"]


@dataclass(frozen=True)
class Augmentation:
    """Augmentation of training images, applied in this order: RandAugment, flip, crop.

    Attributes:
        padding: Black pixels added on each side before a random crop of the original size; 0: no crop.
        flip: Whether each image is mirrored left to right with probability 1/2.
        rand_augment: Operations per image and their magnitude (0 to 30), as in torchvision's `RandAugment`.

    Example:
        >>> change = Augmentation(padding=2, flip=True)
        >>> change(torch.zeros(4, 3, 8, 8, dtype=torch.uint8), torch.arange(4)).shape
        torch.Size([4, 3, 8, 8])
    """

    padding: int = 0
    flip: bool = False
    rand_augment: tuple[int, int] | None = None

    def __bool__(self) -> bool:
        return bool(self.padding or self.flip or self.rand_augment)

    def __call__(self, images: Tensor, bits: Int[Tensor, "batch"]) -> Tensor:
        """Return augmented images, `[batch, channels, *size]`; only the last two axes are flipped and cropped.

        Args:
            images: Images to augment.
            bits: 64 random bits per image.
        """
        if self.rand_augment is not None:
            images = torch.stack(
                [rand_augment(image, own, *self.rand_augment) for image, own in zip(images, bits.tolist(), strict=True)]
            )
        draws = random_bits(bits, 3)
        if self.flip:
            mirrored = (draws[:, 0] & 1).bool()
            images = torch.where(mirrored.view(-1, *[1] * (images.ndim - 1)), images.flip(-1), images)
        if self.padding:
            images = self._crop(images, random_below(draws[:, 1:], 2 * self.padding + 1))
        return images

    def _crop(self, images: Tensor, offsets: Int[Tensor, "batch 2"]) -> Tensor:
        *rest, height, width = images.shape[1:]
        padded = F.pad(images, [self.padding] * 4)
        rows = (offsets[:, :1] + torch.arange(height)).view(-1, *[1] * len(rest), height, 1)
        columns = (offsets[:, 1:] + torch.arange(width)).view(-1, *[1] * len(rest), 1, width)
        padded = padded.gather(-2, rows.expand(*images.shape[:-1], padded.shape[-1]))
        return padded.gather(-1, columns.expand_as(images))


def check_rand_augment(dtype: torch.dtype, facts: DataFacts, name: str) -> None:
    """Raise `ValueError` if RandAugment does not support these images.

    Args:
        dtype: Dtype of the images.
        facts: Facts of the data set.
        name: Name of the data set in the error message.
    """
    if dtype != torch.uint8 or len(facts.image_size) != 2 or facts.channels != 3:
        raise InputError(
            f"data.rand_augment needs 2-D uint8 images with 3 channels, but {name} has "
            f"{str(dtype).removeprefix('torch.')} images with {facts.channels} channels and axes {facts.image_size}: "
            "remove it"
        )


def rand_augment(image: Tensor, bits: int, operations: int = 2, magnitude: int = 9) -> Tensor:
    """Return a uint8 image `[..., 3, height, width]` after torchvision's `RandAugment`, seeded with these bits.

    Torch's global generators, including those of GPUs, are left unchanged.
    """
    RandAugment = import_with_torchvision("torchvision.transforms").RandAugment
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(bits)  # `torch.manual_seed` would also seed GPUs
        return RandAugment(operations, magnitude)(image)
