"""Random changes of training images, each a function of random bits: the same for any number of workers."""

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
    """What happens to training images, in this order: RandAugment, flip, crop.

    Attributes:
        padding: Pixels of black on each side, from which a crop of the old size is taken anywhere; 0: no crop.
        flip: Whether every other image is mirrored, left to right.
        rand_augment: Operations an image and their magnitude (of 30), as torchvision's `RandAugment` takes them.

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
        """Return changed images, `[batch, channels, *size]`; axes before the last two are left as they are.

        Args:
            images: The images.
            bits: 64 random bits for each.
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
    """Raise `ValueError` if images are not those that RandAugment is made for.

    Args:
        dtype: Of the images.
        facts: Of the data set.
        name: Of the data set, for the message.
    """
    if dtype != torch.uint8 or len(facts.image_size) != 2 or facts.channels != 3:
        raise InputError(
            f"data.rand_augment is for flat uint8 images with 3 channels, but {name} has "
            f"{str(dtype).removeprefix('torch.')} with {facts.channels} and axes {facts.image_size}: leave it out"
        )


def rand_augment(image: Tensor, bits: int, operations: int = 2, magnitude: int = 9) -> Tensor:
    """Return a uint8 image `[..., 3, height, width]` after torchvision's `RandAugment`, which these bits decide.

    Torch's global generators are left as they were, those of GPUs too.
    """
    RandAugment = import_with_torchvision("torchvision.transforms").RandAugment
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(bits)  # `torch.manual_seed` would give GPUs that seed, too
        return RandAugment(operations, magnitude)(image)
