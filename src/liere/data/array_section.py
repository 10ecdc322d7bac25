"""Fields and loading that data sets held in memory share: crops, mirroring and RandAugment of whole arrays."""

from __future__ import annotations

from torch import Tensor

from liere.config_fields import Few, FewOrZero, Switch
from liere.data.arrays import ArrayData
from liere.data.augmentation import Augmentation
from liere.data.facts import DataFacts
from liere.data.section import SubsetSection

__all__ = ["ArraySection"]


class ArraySection(SubsetSection):
    """A data set whose images have one size from the start."""

    padding: FewOrZero = 0
    """random crops from images with so many black pixels on each side"""
    flip: Switch = False
    """whether to mirror every other training image"""
    rand_augment: tuple[Few, FewOrZero] | None = None
    """RandAugment with so many operations of this magnitude (of 30), like [2, 9]; null: none"""

    def augmentation(self, split: str) -> Augmentation | None:
        """Return what happens to the examples of a split."""
        return Augmentation(self.padding, self.flip, self.rand_augment) if split == "train" else None

    def choose_arrays(
        self, split: str, images: Tensor, labels: Tensor, facts: DataFacts, length: int | None
    ) -> ArrayData:
        """Return the examples of a split, of arrays that hold all that it is made of."""
        chosen = self.choose(split, labels, length)
        if len(chosen) < len(labels):  # otherwise all of them, in order: no copy
            images, labels = images[chosen], labels[chosen]
        return ArrayData(images, labels, facts, self.augmentation(split))
