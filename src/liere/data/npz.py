"""`data.name: npz`, arrays of one's own: images, volumes or videos with labels in `.npz` files."""

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
    """Arrays of one's own, at the size that they have unless another one is asked for."""

    name: Literal["npz"] = "npz"
    sha256: str | None = None
    """digest that the arrays must have; null: any"""

    @property
    def is_well_known(self) -> bool:
        """Whether the arrays are the same wherever they are kept."""
        return self.sha256 is not None

    def find_facts(self) -> DataFacts:
        """Return what a model has to know of them."""
        arrays = self._read()
        return replace(arrays.facts, image_size=arrays.size_at(self.size))

    def load_split(self, split: str, size: int | None, length: int | None) -> ArrayData:
        """Return a split."""
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
                f"the arrays of {self.path} are not those that are meant: their SHA-256 sum is {arrays.sha256}, not "
                f"{self.sha256}; make or fetch them again, or take them as they are with --data.sha256 null"
            )
        return arrays
