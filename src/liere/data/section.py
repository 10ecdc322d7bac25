"""What all data sets have in common: the fields of their section of a configuration, and what a run asks of them.

A data set is one file beside this one, with a class of its own; `liere.data.registry` lists them all.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from liere.config_fields import Rate, Section, Seed, Share, Side
from liere.data.examples import ExampleSet
from liere.data.facts import DataFacts
from liere.data.subsets import SPLITS, choose_examples
from liere.errors import InputError, suggest
from liere.shapes import Int

from pydantic import model_validator  # isort: skip  (`liere.config_fields` tells where it is missing)

__all__ = ["DEFAULT_NAME", "DataSection", "FileSection", "OwnFileSection", "SubsetSection"]

DEFAULT_NAME = "spatial"


class DataSection(Section):
    """A data set, as a configuration describes it.

    A subclass gives its `name`, its fields, `usual_size`, and the two methods that are abstract here.

    Attributes:
        usual_size: Side of the images if `size` is null; None where only the data tell.
        facts_need_files: Whether `facts` has to look into the files of the data set.
        old_names: Fields that had another name once, which old configurations still use: the name of today for each.
        is_on_command_line: Whether its own fields can be given as options of a command.
    """

    usual_size: ClassVar[int | None] = None
    facts_need_files: ClassVar[bool] = False
    old_names: ClassVar[dict[str, str]] = {}
    is_on_command_line: ClassVar[bool] = True

    name: str
    """data set"""
    size: Side | None = None
    """side of the training images, px; null: the usual one of the data set"""
    seed: Seed = 0
    """seed of the data set and its subsets (training.seed orders it)"""

    @abstractmethod
    def find_facts(self) -> DataFacts:
        """Return what a model has to know of the data set; `facts` keeps it.

        Raises:
            FileNotFoundError: If it is in files that are not there.
            ValueError: If these are damaged.
        """

    @abstractmethod
    def load_split(self, split: str, size: int | None, length: int | None) -> ExampleSet:
        """Return a split; `load` has checked its name, and has put `size` of the section where none was asked for."""

    @property
    def path(self) -> Path:
        """Where the data set is looked for."""
        return Path("data")

    @property
    def is_well_known(self) -> bool:
        """Whether the data set is the same wherever it is kept: one that everybody knows, or with a digest."""
        return True

    @property
    def test_views(self) -> int:
        """How many clips of an example a test looks at."""
        return 1

    @property
    def side(self) -> int:
        """Side of the training images, px: the last axis, of arrays."""
        return self.size or self.usual_size or self.facts.image_size[-1]

    @cached_property
    def facts(self) -> DataFacts:
        """What a model has to know of it; read from the files where it is not known otherwise."""
        return self.find_facts()

    def load(self, split: str, *, size: int | None = None, length: int | None = None) -> ExampleSet:
        """Return a split.

        Args:
            split: `"train"`, `"val"` or `"test"`.
            size: Side of the images; None for that of the training images.
            length: How many examples; None for all. Of `"train"`, the first; of others, evenly spread ones.

        Raises:
            FileNotFoundError: If the data set is not there.
            ValueError: If it is damaged, or a size is not available.
        """
        if split not in SPLITS:
            raise InputError(f"unknown split {split!r}: {suggest(split, SPLITS)}")
        return self.load_split(split, size or self.size, length)

    def decisive_fields(self) -> dict[str, Any]:
        """Return the fields that decide what is learned, as JSON, for fingerprints.

        Those with default values are left out. The data set that was there first is known by having no name.
        """
        name = {} if self.name == DEFAULT_NAME else {"name": self.name}
        fields = self.model_dump(mode="json", exclude={"name", *self.indifferent_fields()}, exclude_defaults=True)
        return name | fields

    def indifferent_fields(self) -> set[str]:
        """Return the fields that do not decide what is learned."""
        return {"size"} if self.size == self.usual_size else set()


class SubsetSection(DataSection):
    """A data set of which a part may be used."""

    fraction: Share = 1.0
    """share of the training examples to use, of every class, drawn by data.seed"""
    holdout: Rate = 0.0
    """share of the training examples to validate with instead; 0: a split of its own where there is one, else test"""

    def is_made_of_training(self, split: str) -> bool:
        """Return whether a split is a part of the training examples."""
        return split == "train" or (split == "val" and self.holdout > 0)

    def choose(self, split: str, labels: Int[Tensor, "examples"], length: int | None) -> Int[Tensor, "chosen"]:
        """Return which of the examples that a split is made of belong to it; see `choose_examples`."""
        return choose_examples(split, labels, length, holdout=self.holdout, fraction=self.fraction, seed=self.seed)


class FileSection(SubsetSection):
    """A data set in files."""

    root: str | None = None
    """folder that holds the data set (npz: or the file); null: ./data"""

    @property
    def path(self) -> Path:
        """Where the data set is looked for."""
        return Path("data" if self.root is None else self.root)

    def indifferent_fields(self) -> set[str]:
        """Return the fields that do not decide what is learned: where a well-known data set is kept is one."""
        return super().indifferent_fields() | ({"root"} if self.is_well_known else set())


class OwnFileSection(FileSection):
    """Files of one's own: where they are has to be told, and what they hold is known once they are looked at."""

    facts_need_files: ClassVar[bool] = True

    @property
    def is_well_known(self) -> bool:
        """Whether the data set is the same wherever it is kept."""
        return False

    @model_validator(mode="after")
    def _root_is_given(self) -> OwnFileSection:
        if self.root is None:
            raise InputError(f"data.root is missing: say where the {self.name} are, like --data.root my-data")
        return self
