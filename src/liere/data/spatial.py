"""`data.name: spatial`, the spatial reasoning task of the paper; `liere.data.spatial_scenes` generates its images."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from liere.config_fields import Count, FewOrZero, Whole
from liere.data.facts import DataFacts
from liere.data.section import DataSection
from liere.data.spatial_scenes import SpatialReasoning

from pydantic import Field  # isort: skip  (`liere.config_fields` reports it if it is missing)

__all__ = ["SpatialData"]

Distance = Annotated[Whole, Field(ge=-(10**4), le=10**4)]
USUAL_SIZE = 108


class SpatialData(DataSection):
    """The spatial reasoning task, generated on the fly."""

    usual_size: ClassVar[int | None] = USUAL_SIZE
    old_names: ClassVar[dict[str, str]] = {"colours": "colors"}

    name: Literal["spatial"] = "spatial"
    train_examples: Count = 800_000
    """number of different training examples"""
    distance: Distance | tuple[Distance, Distance] = 1
    """distance from the Y to its target in cells, or a range such as [1, 4]"""
    distractor_arrows: FewOrZero = 7
    """number of arrows in addition to the target"""
    distractor_letters: FewOrZero = 5
    """number of letters in addition to the Y"""
    colors: Literal["black", "random"] = "black"
    """colors of the symbols: black or random"""

    def find_facts(self) -> DataFacts:
        """Return the properties of the data set that a model needs."""
        return self.load_split("test", self.size, 1).facts

    def load_split(self, split: str, size: int | None, length: int | None) -> SpatialReasoning:
        """Return the examples of a split."""
        return SpatialReasoning(
            size or USUAL_SIZE,
            split,
            self.seed,
            self.train_examples if length is None and split == "train" else length,
            distance=self.distance,
            distractor_arrows=self.distractor_arrows,
            distractor_letters=self.distractor_letters,
            colors=self.colors,
        )

    def decisive_fields(self) -> dict[str, Any]:
        """Return the fields that affect what is learned, under the names that fingerprints have always used."""
        today = {new: old for old, new in self.old_names.items()}
        return {today.get(name, name): value for name, value in super().decisive_fields().items()}
