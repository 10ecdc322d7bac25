"""`data.name: npz`, your own arrays of images, volumes or videos with labels in `.npz` files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from liere.data.array_section import ArraySection
from liere.data.arrays import ArrayData
from liere.data.facts import DataFacts
from liere.data.section import OwnFileSection
from liere.errors import InputError

if TYPE_CHECKING:
    from liere.data.reading.npz_arrays import NpzArrays

__all__ = ["NpzData"]


class NpzData(ArraySection, OwnFileSection):
    """Your own arrays, at their original size unless `size` is set."""

    name: Literal["npz"] = "npz"
    sha256: str | None = None
    """SHA-256 digest that the arrays must have; null: any"""

    @property
    def is_well_known(self) -> bool:
        """Whether the arrays are identified by their digest, wherever they are stored."""
        return self.sha256 is not None

    def find_facts(self) -> DataFacts:
        """Return the properties of the arrays that a model needs."""
        arrays = self._read()
        return replace(arrays.facts, image_size=arrays.size_at(self.size))

    def load_split(self, split: str, size: int | None, length: int | None) -> ArrayData:
        """Return the examples of a split."""
        arrays = self._read()
        if self.rand_augment is not None:
            arrays.check_rand_augment()
        images, labels = arrays.part(split, holdout=self.holdout)
        facts = replace(arrays.facts, image_size=arrays.size_at(size))
        return self.choose_arrays(split, images, labels, facts, length)

    def _read(self) -> NpzArrays:
        from liere.data.reading.npz_arrays import read_npz

        arrays = read_npz(self.path, self.seed)
        if self.sha256 is not None and arrays.sha256 != self.sha256:
            raise InputError(
                f"the arrays of {self.path} have the SHA-256 digest {arrays.sha256}, but data.sha256 is "
                f"{self.sha256}; create or download them again, or accept any arrays with --data.sha256 null"
            )
        return arrays
