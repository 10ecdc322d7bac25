"""What a table or figure of the paper needs: recipes, encodings, variations, seeds and tests, from a YAML file."""

from __future__ import annotations

from typing import Any, Literal

from liere.config_fields import Count, Section, Seed
from liere.errors import InputError, suggest
from liere.files.shipped import experiments_folder
from liere.runs.conditions import Condition
from liere.runs.config_file import explain, read_config

from pydantic import Field, ValidationError, model_validator  # isort: skip  (`fields` tells where it is missing)

__all__ = ["DataColumn", "Experiment", "TestSpec", "read_experiment"]


class TestSpec(Section):
    """How runs are to be tested; what is left out is as in training."""

    __test__ = False  # not a test of pytest's

    size: Count | None = None
    """side of the images"""
    policy: Literal["", "extend", "rescale", "reference"] = ""
    """positions"""
    shuffle: Literal["", "patches", "frames"] = ""
    """what is put in random order"""
    attention_scale: Literal["", "constant", "log"] = ""
    """scale of the attention scores"""
    placement: str = ""
    """where the grid lies, in token steps"""

    def condition(self, side: int) -> Condition:
        """Return it for images of a side."""
        return Condition(**self.model_dump() | {"size": self.size or side})


class DataColumn(Section):
    """A data set of an experiment."""

    recipe: str
    """configuration of its runs, a file in experiments/"""
    stands_for: str = ""
    """the paper's data set that it is shown beside; empty: the one of its own name"""
    tests: list[TestSpec] = Field(default_factory=lambda: [TestSpec()])
    """how its runs are tested"""
    encodings: list[str] | None = None
    """which encodings, if not those of the experiment"""
    seeds: list[Seed] | None = None
    """which seeds, if not those of the experiment"""
    how_to_get: str = ""
    """how to get the data, said where they are missing"""


class Experiment(Section):
    """The runs of a table or figure."""

    title: str
    """what it shows"""
    note: str = ""
    """what else to know, below the table"""
    data: dict[str, DataColumn]
    """data sets by name"""
    encodings: list[str] = Field(min_length=1)
    """encodings, with options like absolute:init_std=1"""
    vary: dict[str, dict[str, Any]] = {"": {}}  # noqa: RUF012  (pydantic copies it)
    """what else is varied: fields of the configuration, by name; `encodings` there limits it to some of them"""
    fine_tune: dict[str, Any] | None = None
    """fields of runs that start from the weights of these, and are tested too"""
    seeds: list[Seed] = Field(min_length=1)
    """seeds of every run"""
    test_examples: Count | None = None
    """how many test examples; null: all"""

    @model_validator(mode="after")
    def _is_not_empty(self) -> Experiment:
        if not self.data or not self.vary:
            raise InputError("data and vary need at least one entry")
        return self


def read_experiment(name: str, scale: str) -> Experiment:
    """Return the experiment of a table or figure at a scale.

    Raises:
        FileNotFoundError: If there is none.
        ValueError: If its file is wrong.
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
