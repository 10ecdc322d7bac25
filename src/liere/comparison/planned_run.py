"""One run of a plan: its configuration, its tests, and whether they are done."""

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
    """A run to train and test.

    Attributes:
        folder: Folder of the run.
        config: Configuration of the run.
        conditions: Conditions to test it under.
        examples: Number of test examples; None for all.
    """

    folder: Path
    config: RunConfig
    conditions: tuple[Condition, ...]
    examples: int | None = None

    @property
    def log_file(self) -> Path:
        """Log file of its process, outside its folder because that folder is created atomically during the run."""
        return self.folder.with_name(f"{self.folder.name}.log")

    @cached_property
    def operations(self) -> float:
        """Estimated training cost in floating-point operations."""
        return estimate_operations(self.config)

    def is_trained(self, folder: Path | None = None) -> bool:
        """Return whether the run is trained, in its own folder or in the one given."""
        folder = folder or self.folder
        return (folder / "config.yaml").exists() and open_run(folder).is_finished

    def is_done(self, folder: Path | None = None) -> bool:
        """Return whether the run is trained and tested, in its own folder or in the one given."""
        folder = folder or self.folder
        return self.is_trained(folder) and not self.untested(open_run(folder))

    def untested(self, run: Run) -> list[Condition]:
        """Return the planned conditions under which a run has not been tested with the planned number of examples."""
        found = {Condition.of(record) for record in run.evaluations("final") if self._is_enough(record)}
        return [condition for condition in self.conditions if condition not in found]

    def _is_enough(self, record: dict[str, Any]) -> bool:
        return record.get("asked", "unknown") == self.examples or (
            self.examples is not None and record["examples"] == self.examples
        )


def check_recipe(planned: PlannedRun) -> None:
    """Raise `ValueError` if the folder contains a run of another recipe or no run, or if the log cannot be written."""
    if planned.log_file.exists():
        check_regular(planned.log_file)
    folder = planned.folder
    if not (folder / "config.yaml").exists():
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"{folder} is in the way of a run, but contains no run itself: delete or move it")
    else:
        there = open_run(folder).config
        if there.fingerprint != planned.config.fingerprint:
            raise InputError(f"{folder} contains a run of a different recipe: choose another --out, or delete it")
