"""Examples that are held in memory, decoded once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from liere.data.augmentation import Augmentation
from liere.data.examples import Batch, ExampleSet
from liere.data.facts import DataFacts
from liere.errors import InputError
from liere.shapes import Int

__all__ = ["ArrayData", "resize", "scale_size"]

RESIZED_PIXELS = 2**23
"""Pixels that any example may be resized to; others to 8 times as many as they have."""


class ArrayData(ExampleSet):
    """Images, clips or volumes in memory.

    Args:
        images: `[examples, channels, *size]`, uint8 or float.
        labels: `[examples]`, from 0.
        facts: Of the data set; its `image_size` may differ from that of the images, which are then resized, batch by
            batch.
        augmentation: What happens to training examples.

    Example:
        >>> images, labels = torch.zeros(5, 1, 8, 8, dtype=torch.uint8), torch.tensor([0, 1, 0, 1, 1])
        >>> data = ArrayData(images, labels, DataFacts(("a", "b"), 1, (16, 16), (0.5,), (0.5,)))
        >>> data.batch([0, 1])[0].shape
        torch.Size([2, 1, 16, 16])
    """

    def __init__(
        self,
        images: Tensor,
        labels: Int[Tensor, "examples"],
        facts: DataFacts,
        augmentation: Augmentation | None = None,
    ) -> None:
        if len(images) != len(labels):
            raise InputError(f"there are {len(images)} images, but {len(labels)} labels")
        self.images, self.labels, self._facts = images, labels, facts
        self.augmentation = augmentation or Augmentation()

    @property
    def facts(self) -> DataFacts:
        """What a model has to know of it."""
        return self._facts

    def __len__(self) -> int:
        return len(self.labels)

    def load(self, indices: Sequence[int], bits: Int[Tensor, "batch"] | None = None) -> Batch:
        """Return a batch, augmented if there are random bits."""
        ids = torch.tensor(indices, dtype=torch.long)
        images = self.images[ids]
        if bits is not None and self.augmentation:
            images = self.augmentation(images, bits)
        return Batch(ids, resize(images, self._facts.image_size), self.labels[ids])


def resize(images: Tensor, size: Sequence[int]) -> Tensor:
    """Return images `[batch, channels, *axes]` at another size, interpolated linearly, and antialiased in 2-D.

    Example:
        >>> resize(torch.zeros(2, 3, 4, 8, 8, dtype=torch.uint8), (4, 16, 16)).shape
        torch.Size([2, 3, 4, 16, 16])
    """
    if tuple(images.shape[2:]) == tuple(size):
        return images
    is_flat = images.ndim == 4
    resized = F.interpolate(
        images.float(), tuple(size), mode="bilinear" if is_flat else "trilinear", align_corners=False, antialias=is_flat
    )
    return resized if images.is_floating_point() else resized.round_().clamp_(0, 255).to(images.dtype)


def scale_size(size: tuple[int, ...], side: int | None, name: str, *, keep_first: bool = False) -> tuple[int, ...]:
    """Return the length of each axis where the last one is `side`, the others in proportion.

    Args:
        size: Length of each axis of the examples.
        side: The new length of the last one; None for the old one.
        name: Of the examples, for the message.
        keep_first: Whether the first axis, of frames, keeps its length.

    Raises:
        ValueError: If that is a lot, as it is where the last axis is by far the shortest.

    Example:
        >>> scale_size((4, 32, 16), 8, "clips"), scale_size((4, 32, 16), 8, "clips", keep_first=True)
        ((2, 16, 8), (4, 16, 8))
    """
    if side is None:
        return size
    scaled = tuple(max(round(side * length / size[-1]), 1) for length in size)
    scaled = (size[0], *scaled[1:]) if keep_first else scaled
    if math.prod(scaled) > max(8 * math.prod(size), RESIZED_PIXELS):
        raise InputError(
            f"{name} have axes {size} and would have {scaled} where the last one is {side}: choose a smaller size"
        )
    return scaled
