"""One run of a plan: what to train, how to test it, and how much of that is done."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from liere.errors import InputError
from liere.files.reading import check_regular
from liere.runs.conditions import Condition
from liere.runs.config import RunConfig
from liere.runs.cost import estimate_operations
from liere.runs.run import Run, open_run

__all__ = ["PlannedRun", "check_recipe"]


@dataclass(frozen=True)
class PlannedRun:
    """One run: what to train and how to test it.

    Attributes:
        folder: Where it is kept.
        config: What it is.
        conditions: How it is to be tested.
        examples: With how many test examples; None for all.
    """

    folder: Path
    config: RunConfig
    conditions: tuple[Condition, ...]
    examples: int | None = None

    @property
    def log_file(self) -> Path:
        """What its process prints; beside its folder, which appears as a whole, by itself."""
        return self.folder.with_name(f"{self.folder.name}.log")

    @cached_property
    def operations(self) -> float:
        """What its training costs, in floating-point operations."""
        return estimate_operations(self.config)

    def is_trained(self, folder: Path | None = None) -> bool:
        """Return whether it is trained, in its folder or in another."""
        folder = folder or self.folder
        return (folder / "config.yaml").exists() and open_run(folder).is_finished

    def is_done(self, folder: Path | None = None) -> bool:
        """Return whether it is trained and tested, in its folder or in another."""
        folder = folder or self.folder
        return self.is_trained(folder) and not self.untested(open_run(folder))

    def untested(self, run: Run) -> list[Condition]:
        """Return the conditions that a run has not been tested under, with as many examples."""
        found = {Condition.of(record) for record in run.evaluations("final") if self._is_enough(record)}
        return [condition for condition in self.conditions if condition not in found]

    def _is_enough(self, record: dict[str, Any]) -> bool:
        return record.get("asked", "unknown") == self.examples or (
            self.examples is not None and record["examples"] == self.examples
        )


def check_recipe(planned: PlannedRun) -> None:
    """Raise `ValueError` if there is a run of another recipe where one is planned, or no log can be written."""
    if planned.log_file.exists():
        check_regular(planned.log_file)
    if (planned.folder / "config.yaml").exists():
        there = open_run(planned.folder).config
        if there.fingerprint != planned.config.fingerprint:
            raise InputError(f"{planned.folder} was made by another recipe: choose another --out, or delete it")
