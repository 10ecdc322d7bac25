"""The experiment behind a table or figure: recipes, encodings, variations, seeds and tests, read from YAML."""

from __future__ import annotations

from typing import Any, Literal

from liere.config_fields import Count, Section, Seed
from liere.errors import InputError, suggest
from liere.files.shipped import experiments_folder
from liere.runs.conditions import Condition
from liere.runs.config_file import explain, read_config

from pydantic import Field, ValidationError, model_validator  # isort: skip  (`config_fields` explains a missing pydantic)

__all__ = ["DataColumn", "Experiment", "TestSpec", "read_experiment"]


class TestSpec(Section):
    """One test condition; fields that are left out are as in training."""

    __test__ = False  # keeps pytest from collecting it

    size: Count | None = None
    """side of the images"""
    policy: Literal["", "extend", "rescale", "reference"] = ""
    """position policy"""
    shuffle: Literal["", "patches", "frames"] = ""
    """what to put in random order"""
    attention_scale: Literal["", "constant", "log"] = ""
    """scale of the attention scores"""
    placement: str = ""
    """offset of the grid, in token steps"""

    def condition(self, side: int) -> Condition:
        """Return the test condition, with images of `side` pixels unless a size is set."""
        return Condition(**self.model_dump() | {"size": self.size or side})


class DataColumn(Section):
    """A data set of an experiment."""

    recipe: str
    """configuration file of its runs, in experiments/"""
    stands_for: str = ""
    """the paper's data set to compare it with; empty: the one with the same name"""
    tests: list[TestSpec] = Field(default_factory=lambda: [TestSpec()])
    """how its runs are tested"""
    encodings: list[str] | None = None
    """encodings to use instead of those of the experiment"""
    seeds: list[Seed] | None = None
    """seeds to use instead of those of the experiment"""
    how_to_get: str = ""
    """how to get the data; shown if it is missing"""


class Experiment(Section):
    """The runs of a table or figure."""

    title: str
    """what it shows"""
    note: str = ""
    """a note to show below the table"""
    data: dict[str, DataColumn]
    """data sets by name"""
    encodings: list[str] = Field(min_length=1)
    """encodings, with options like absolute:init_std=1"""
    vary: dict[str, dict[str, Any]] = {"": {}}  # noqa: RUF012  (pydantic copies it)
    """variations by name, as fields of the configuration; `encodings` restricts a variation to some encodings"""
    fine_tune: dict[str, Any] | None = None
    """fields of additional runs that are fine-tuned from the weights of each run"""
    seeds: list[Seed] = Field(min_length=1)
    """seeds of every run"""
    test_examples: Count | None = None
    """number of test examples; null: all"""

    @model_validator(mode="after")
    def _is_not_empty(self) -> Experiment:
        if not self.data or not self.vary:
            raise InputError("data and vary must not be empty: add at least one entry to each")
        return self


def read_experiment(name: str, scale: str) -> Experiment:
    """Return the experiment of a table or figure at a scale.

    Raises:
        FileNotFoundError: If it does not exist.
        ValueError: If its file is invalid.
    """
    folder = experiments_folder()
    file = folder / "tables" / name / f"{scale}.yaml"
    if not file.is_file():
        known = sorted(path.parent.name for path in folder.glob(f"tables/*/{scale}.yaml"))
        raise FileNotFoundError(f"no experiment {name!r} at scale {scale!r}: {suggest(name, known)}")
    try:
        return Experiment.model_validate(read_config(file))
    except ValidationError as error:
        raise InputError(f"{file}: {explain(error)}") from None
