"""`data.name: python`, the configuration of torch data sets passed from Python."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import torch

from liere.config_fields import Count, Positive, Real, Side
from liere.data.array_section import ArraySection
from liere.data.arrays import scale_size
from liere.data.augmentation import check_rand_augment
from liere.data.facts import DataFacts
from liere.data.given_examples import GivenExamples
from liere.data.torch_datasets import find_given
from liere.errors import InputError

from pydantic import Field, model_validator  # isort: skip  (`liere.config_fields` reports it if it is missing)

__all__ = ["PythonData"]


class PythonData(ArraySection):
    """Data passed to `liere.data.from_datasets`; `GivenData.as_config` writes this section.

    A run stores the facts of its data and a digest to recognize them, but not the data.
    """

    is_on_command_line: ClassVar[bool] = False

    name: Literal["python"] = "python"
    description: str = ""
    """description of the data"""
    examples: dict[str, Count] = {}  # noqa: RUF012  (pydantic copies it)
    """number of examples of each data set; all: a single data set that is split automatically"""
    image_shape: tuple[Side, ...] = ()
    """number of channels and length of each axis of an image"""
    classes: tuple[str, ...] = ()
    """names of the classes"""
    mean: tuple[Annotated[Real, Field(ge=-1e30, le=1e30)], ...] = ()
    """mean of each channel"""
    std: tuple[Positive, ...] = ()
    """standard deviation of each channel"""
    digest: str = ""
    """digest of some examples that identifies the data"""

    @model_validator(mode="after")
    def _was_written_by_as_config(self) -> PythonData:
        channels = len(self.mean)
        is_whole = self.digest and self.examples and len(self.classes) > 1 and len(self.image_shape) > 2
        if not is_whole or self.image_shape[0] != channels or len(self.std) != channels:
            raise InputError(
                "data.name python is for data sets passed from Python and cannot be written by hand: use "
                "liere.toolkit.train(..., data=liere.data.from_datasets(...))"
            )
        return self

    def find_facts(self) -> DataFacts:
        """Return the properties of the data that a model needs; the data themselves are not needed."""
        return self._facts_at(self.size)

    def load_split(self, split: str, size: int | None, length: int | None) -> GivenExamples:
        """Return the examples of a split.

        Raises:
            ValueError: If the data were not passed to this process.
        """
        given = find_given(self.digest, self.description, self.examples)
        part, places = given.part("train" if self.is_made_of_training(split) else split, self.seed)
        needs_labels = self.holdout > 0 or self.fraction < 1
        labels = given.labels(part)[places] if needs_labels else torch.zeros_like(places)
        chosen = places[self.choose(split, labels, length)]
        examples = GivenExamples(given.parts[part], chosen, self._facts_at(size), self.augmentation(split))
        if self.rand_augment is not None:
            image, _ = examples[0]
            check_rand_augment(image.dtype, self.facts, self.description)
        return examples

    def indifferent_fields(self) -> set[str]:
        """Return the names of the fields that do not affect what is learned."""
        return super().indifferent_fields() | {"description"}

    def _facts_at(self, side: int | None) -> DataFacts:
        channels, *size = self.image_shape
        facts = DataFacts(self.classes, channels, tuple(size), self.mean, self.std)
        return replace(facts, image_size=scale_size(facts.image_size, side, f"the examples of {self.description}"))
