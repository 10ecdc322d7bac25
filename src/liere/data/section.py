"""What all data sets share: the fields of their configuration section, and the interface that a run needs.

Each data set is a class in its own file next to this one; `liere.data.registry` lists them all.
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

from pydantic import model_validator  # isort: skip  (`liere.config_fields` reports it if it is missing)

__all__ = ["DEFAULT_NAME", "DataSection", "FileSection", "OwnFileSection", "SubsetSection"]

DEFAULT_NAME = "spatial"


class DataSection(Section):
    """The configuration section of a data set.

    A subclass defines `name`, its fields, `usual_size` and the two abstract methods.

    Attributes:
        usual_size: Side of the images if `size` is null; None if only the data can tell.
        facts_need_files: Whether `facts` reads the files of the data set.
        old_names: Former field names in old configurations, mapped to their current names.
        is_on_command_line: Whether its fields are command-line options.
    """

    usual_size: ClassVar[int | None] = None
    facts_need_files: ClassVar[bool] = False
    old_names: ClassVar[dict[str, str]] = {}
    is_on_command_line: ClassVar[bool] = True

    name: str
    """data set"""
    size: Side | None = None
    """side of the training images in pixels; null: the usual size of the data set"""
    seed: Seed = 0
    """seed that determines the data set and its subsets (training.seed determines their order)"""

    @abstractmethod
    def find_facts(self) -> DataFacts:
        """Return the properties of the data set that a model needs; `facts` caches them.

        Raises:
            FileNotFoundError: If files of the data set are missing.
            ValueError: If they are damaged.
        """

    @abstractmethod
    def load_split(self, split: str, size: int | None, length: int | None) -> ExampleSet:
        """Return a split; `load` has checked the name and replaced a missing size by that of the section."""

    @property
    def path(self) -> Path:
        """Folder or file in which the data set is expected."""
        return Path("data")

    @property
    def is_well_known(self) -> bool:
        """Whether the data set is the same wherever it is stored: a public one, or one with a digest."""
        return True

    @property
    def test_views(self) -> int:
        """Number of clips per example in tests."""
        return 1

    @property
    def side(self) -> int:
        """Side of the training images in pixels; for arrays, the length of the last axis."""
        return self.size or self.usual_size or self.facts.image_size[-1]

    @cached_property
    def facts(self) -> DataFacts:
        """Properties of the data set that a model needs; read from its files if necessary."""
        return self.find_facts()

    def load(self, split: str, *, size: int | None = None, length: int | None = None) -> ExampleSet:
        """Return the examples of a split.

        Args:
            split: `"train"`, `"val"` or `"test"`.
            size: Side of the images; None for that of the training images.
            length: Number of examples: the first of `"train"`, evenly spaced ones of other splits; None for all.

        Raises:
            FileNotFoundError: If the data set does not exist.
            ValueError: If it is damaged, or a size is not available.
        """
        if split not in SPLITS:
            raise InputError(f"unknown split {split!r}: {suggest(split, SPLITS)}")
        return self.load_split(split, size or self.size, length)

    def decisive_fields(self) -> dict[str, Any]:
        """Return the fields that affect what is learned, as JSON values, for fingerprints.

        Default values are left out. The original data set is identified by having no name.
        """
        name = {} if self.name == DEFAULT_NAME else {"name": self.name}
        fields = self.model_dump(mode="json", exclude={"name", *self.indifferent_fields()}, exclude_defaults=True)
        return name | fields

    def indifferent_fields(self) -> set[str]:
        """Return the names of the fields that do not affect what is learned."""
        return {"size"} if self.size == self.usual_size else set()


class SubsetSection(DataSection):
    """A data set that can be used in part."""

    fraction: Share = 1.0
    """fraction of the training examples of every class to use, drawn with data.seed"""
    holdout: Rate = 0.0
    """fraction of the training examples to validate with; 0: validate with the val split if there is one, else test"""

    def is_made_of_training(self, split: str) -> bool:
        """Return whether a split is drawn from the training examples."""
        return split == "train" or (split == "val" and self.holdout > 0)

    def choose(self, split: str, labels: Int[Tensor, "examples"], length: int | None) -> Int[Tensor, "chosen"]:
        """Return the indices of the examples that belong to a split; see `choose_examples`."""
        return choose_examples(split, labels, length, holdout=self.holdout, fraction=self.fraction, seed=self.seed)


class FileSection(SubsetSection):
    """A data set in files."""

    root: str | None = None
    """folder that contains the data set (npz: or the file itself); null: ./data"""

    @property
    def path(self) -> Path:
        """Folder or file in which the data set is expected."""
        return Path("data" if self.root is None else self.root)

    def indifferent_fields(self) -> set[str]:
        """Return the names of the fields that do not affect what is learned; `root` of well-known data is one."""
        return super().indifferent_fields() | ({"root"} if self.is_well_known else set())


class OwnFileSection(FileSection):
    """Your own files: `root` is required, and their facts are read from them."""

    facts_need_files: ClassVar[bool] = True

    @property
    def is_well_known(self) -> bool:
        """Whether the data set is the same wherever it is stored."""
        return False

    @model_validator(mode="after")
    def _root_is_given(self) -> OwnFileSection:
        if self.root is None:
            raise InputError(
                f"data.root is missing: set it to the path of your {self.name} data, for example --data.root my-data"
            )
        return self
