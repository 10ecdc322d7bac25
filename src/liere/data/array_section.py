"""Fields and loading shared by data sets held in memory: crops, mirroring and RandAugment on whole arrays."""

from __future__ import annotations

from torch import Tensor

from liere.config_fields import Few, FewOrZero, Switch
from liere.data.arrays import ArrayData
from liere.data.augmentation import Augmentation
from liere.data.facts import DataFacts
from liere.data.section import SubsetSection

__all__ = ["ArraySection"]


class ArraySection(SubsetSection):
    """A data set whose images all have the same size."""

    padding: FewOrZero = 0
    """random crops after padding each side with this many black pixels; 0: no crops"""
    flip: Switch = False
    """whether to mirror each training image with probability 1/2"""
    rand_augment: tuple[Few, FewOrZero] | None = None
    """RandAugment operations per image and their magnitude (0 to 30), for example [2, 9]; null: none"""

    def augmentation(self, split: str) -> Augmentation | None:
        """Return the augmentation of a split; None for splits other than training."""
        return Augmentation(self.padding, self.flip, self.rand_augment) if split == "train" else None

    def choose_arrays(
        self, split: str, images: Tensor, labels: Tensor, facts: DataFacts, length: int | None
    ) -> ArrayData:
        """Return the examples of a split, chosen from the arrays that contain it."""
        chosen = self.choose(split, labels, length)
        if len(chosen) < len(labels):  # indexing copies, so skip it when all examples are used
            images, labels = images[chosen], labels[chosen]
        return ArrayData(images, labels, facts, self.augmentation(split))
