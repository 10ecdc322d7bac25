"""The interface of every data set: examples by index, in batches, with random bits for augmentation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from torch import Tensor
from torch.utils.data import Dataset

from liere.data.facts import DataFacts
from liere.shapes import Int

__all__ = ["Batch", "ExampleSet"]


class Batch(NamedTuple):
    """A batch of examples.

    Attributes:
        ids: Indices of the examples in their data set, `[batch]`, without those that could not be read.
        images: `[batch, channels, *size]`, or `[batch, clips, channels, *size]` for several views per example; uint8
            from 0 to 255, or float.
        labels: `[batch]`.
    """

    ids: Tensor
    images: Tensor
    labels: Tensor


class ExampleSet(Dataset[tuple[Tensor, int]]):
    """A data set of labeled images, clips or volumes.

    Attributes:
        can_skip: Whether `load` may skip examples that cannot be read.
    """

    can_skip = False

    @property
    @abstractmethod
    def facts(self) -> DataFacts:
        """Properties of the data set that a model needs."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of examples."""

    @abstractmethod
    def load(self, indices: Sequence[int], bits: Int[Tensor, "batch"] | None = None) -> Batch:
        """Return a batch.

        Args:
            indices: Indices of the examples.
            bits: 64 random bits per example that seed its augmentation; None for no augmentation, as in tests.
        """

    def batch(self, indices: Iterable[int] | Tensor) -> tuple[Tensor, Int[Tensor, "batch"]]:
        """Return images and labels without augmentation."""
        _, images, labels = self.load([int(index) for index in indices])
        return images, labels

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        images, labels = self.batch([index])
        return images[0], int(labels[0])
