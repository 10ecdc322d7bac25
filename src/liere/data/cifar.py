"""`data.name: cifar10` and `cifar100`, read from the same files as in torchvision or, for CIFAR-10, from PNG files."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from liere.config_fields import Switch
from liere.data.array_section import ArraySection
from liere.data.arrays import ArrayData
from liere.data.facts import DataFacts
from liere.data.section import FileSection

__all__ = ["Cifar10Data", "Cifar100Data"]

SIDE = 32
CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CIFAR100 = tuple(map(str, range(100)))


class _CifarData(ArraySection, FileSection):
    """Fields and loading shared by both data sets.

    Attributes:
        known_facts: Facts of the data set at its original size.
    """

    usual_size: ClassVar[int | None] = SIDE
    known_facts: ClassVar[DataFacts]

    verify: Switch = True
    """whether to verify the checksums of the files"""

    def find_facts(self) -> DataFacts:
        """Return the properties of the data set that a model needs."""
        return self._facts_at(self.size)

    def load_split(self, split: str, size: int | None, length: int | None) -> ArrayData:
        """Return the examples of a split."""
        from liere.data.reading.cifar_files import read_cifar

        file = "train" if self.is_made_of_training(split) else "test"
        images, labels = read_cifar(self.name, self.path, file, verify=self.verify)
        return self.choose_arrays(split, images, labels, self._facts_at(size), length)

    def indifferent_fields(self) -> set[str]:
        """Return the names of the fields that do not affect what is learned."""
        return super().indifferent_fields() | {"verify"}

    def _facts_at(self, size: int | None) -> DataFacts:
        return replace(self.known_facts, image_size=(size or SIDE,) * 2)


class Cifar10Data(_CifarData):
    """CIFAR-10."""

    known_facts: ClassVar[DataFacts] = DataFacts(
        CIFAR10, 3, (SIDE, SIDE), mean=(0.4914, 0.4822, 0.4465), std=(0.2470, 0.2435, 0.2616)
    )

    name: Literal["cifar10"] = "cifar10"


class Cifar100Data(_CifarData):
    """CIFAR-100."""

    known_facts: ClassVar[DataFacts] = DataFacts(
        CIFAR100, 3, (SIDE, SIDE), mean=(0.5071, 0.4865, 0.4409), std=(0.2673, 0.2564, 0.2762)
    )

    name: Literal["cifar100"] = "cifar100"
