"""What every data set has: examples by number, in batches, with the random bits that augmentation may use."""

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
    """Some examples.

    Attributes:
        ids: Places of the examples in their data set, `[batch]`; those that could not be read are left out.
        images: `[batch, channels, *size]`, or `[batch, clips, channels, *size]` of several views of each; uint8 from 0
            to 255, or float.
        labels: `[batch]`.
    """

    ids: Tensor
    images: Tensor
    labels: Tensor


class ExampleSet(Dataset[tuple[Tensor, int]]):
    """A data set of labeled images, clips or volumes.

    Attributes:
        can_skip: Whether `load` may leave out examples that cannot be read.
    """

    can_skip = False

    @property
    @abstractmethod
    def facts(self) -> DataFacts:
        """What a model has to know of it."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of examples."""

    @abstractmethod
    def load(self, indices: Sequence[int], bits: Int[Tensor, "batch"] | None = None) -> Batch:
        """Return a batch.

        Args:
            indices: Which examples.
            bits: 64 random bits for each, which decide its augmentation; None for none, as in tests.
        """

    def batch(self, indices: Iterable[int] | Tensor) -> tuple[Tensor, Int[Tensor, "batch"]]:
        """Return images and labels as they are tested."""
        _, images, labels = self.load([int(index) for index in indices])
        return images, labels

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        images, labels = self.batch([index])
        return images[0], int(labels[0])
