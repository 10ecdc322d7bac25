"""`data.name: spatial`, the spatial reasoning task of the paper; `liere.data.spatial_scenes` makes its images."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from liere.config_fields import Count, FewOrZero, Whole
from liere.data.facts import DataFacts
from liere.data.section import DataSection
from liere.data.spatial_scenes import SpatialReasoning

from pydantic import Field  # isort: skip  (`liere.config_fields` tells where it is missing)

__all__ = ["SpatialData"]

Distance = Annotated[Whole, Field(ge=-(10**4), le=10**4)]
USUAL_SIZE = 108


class SpatialData(DataSection):
    """The spatial reasoning task: made, not read."""

    usual_size: ClassVar[int | None] = USUAL_SIZE
    old_names: ClassVar[dict[str, str]] = {"colours": "colors"}

    name: Literal["spatial"] = "spatial"
    train_examples: Count = 800_000
    """how many different training examples there are"""
    distance: Distance | tuple[Distance, Distance] = 1
    """cells from the Y to its target, or a range like [1, 4]"""
    distractor_arrows: FewOrZero = 7
    """arrows besides the target"""
    distractor_letters: FewOrZero = 5
    """letters besides the Y"""
    colors: Literal["black", "random"] = "black"
    """inks: black or random"""

    def find_facts(self) -> DataFacts:
        """Return what a model has to know of it."""
        return self.load_split("test", self.size, 1).facts

    def load_split(self, split: str, size: int | None, length: int | None) -> SpatialReasoning:
        """Return a split."""
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
        """Return the fields that decide what is learned, by the names that they have had in all fingerprints."""
        today = {new: old for old, new in self.old_names.items()}
        return {today.get(name, name): value for name, value in super().decisive_fields().items()}
