"""Examples held in memory."""

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
"""Any example may be resized up to this many pixels; larger ones up to 8 times their own number."""


class ArrayData(ExampleSet):
    """Images, clips or volumes in memory.

    Args:
        images: `[examples, channels, *size]`, uint8 or float.
        labels: `[examples]`, from 0.
        facts: Facts of the data set; if its `image_size` differs from that of the images, each batch is resized.
        augmentation: Augmentation of training examples; None for none.

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
            raise InputError(
                f"images and labels must have the same length, got {len(images)} images and {len(labels)} labels"
            )
        self.images, self.labels, self._facts = images, labels, facts
        self.augmentation = augmentation or Augmentation()

    @property
    def facts(self) -> DataFacts:
        """Properties of the data set that a model needs."""
        return self._facts

    def __len__(self) -> int:
        return len(self.labels)

    def load(self, indices: Sequence[int], bits: Int[Tensor, "batch"] | None = None) -> Batch:
        """Return a batch, augmented if random bits are given."""
        ids = torch.tensor(indices, dtype=torch.long)
        images = self.images[ids]
        if bits is not None and self.augmentation:
            images = self.augmentation(images, bits)
        return Batch(ids, resize(images, self._facts.image_size), self.labels[ids])


def resize(images: Tensor, size: Sequence[int]) -> Tensor:
    """Return images `[batch, channels, *axes]` resized by linear interpolation, with antialiasing in 2-D.

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
    """Return the axis lengths after scaling the last axis to `side` and the others in proportion.

    Args:
        size: Length of each axis of the examples.
        side: New length of the last axis; None to keep all lengths.
        name: Name of the examples in the error message.
        keep_first: Whether the first axis (frames) keeps its length.

    Raises:
        ValueError: If the result is too large, which happens when the last axis is by far the shortest.

    Example:
        >>> scale_size((4, 32, 16), 8, "clips"), scale_size((4, 32, 16), 8, "clips", keep_first=True)
        ((2, 16, 8), (4, 16, 8))
    """
    if side is None:
        return size
    scaled = tuple(max(round(side * length / size[-1]), 1) for length in size)
    scaled = (size[0], *scaled[1:]) if keep_first else scaled
    if math.prod(scaled) > max(8 * math.prod(size), RESIZED_PIXELS):
        raise InputError(f"{name} have axes {size} and would grow to {scaled} at size {side}: choose a smaller size")
    return scaled
