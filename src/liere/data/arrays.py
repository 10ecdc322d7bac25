"""Examples that are held in memory, decoded once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from liere.data.augmentation import Augmentation
from liere.data.examples import Batch, DataFacts, ExampleSet
from liere.errors import InputError
from liere.shapes import Int

__all__ = ["ArrayData"]


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

    def load(self, indices: Sequence[int], words: Int[Tensor, "batch"] | None = None) -> Batch:
        """Return a batch, augmented if there are random words."""
        ids = torch.tensor(indices, dtype=torch.long)
        images = self.images[ids]
        if words is not None and self.augmentation:
            images = self.augmentation(images, words)
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
