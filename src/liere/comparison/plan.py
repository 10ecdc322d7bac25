"""Plan a comparison: the runs of several encodings and seeds with one recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from liere.comparison.executors.contract import Executor
from liere.comparison.executors.local import LocalExecutor
from liere.comparison.planned_run import PlannedRun, check_recipe
from liere.encodings import PositionEncoding
from liere.errors import InputError
from liere.runs.conditions import Condition
from liere.runs.config_file import parse_config
from liere.runs.encoding_text import encoding_text, file_name, parse_encoding
from liere.runs.model import build_model

__all__ = ["Plan", "make_plan"]


@dataclass(frozen=True)
class Plan:
    """The runs of a comparison.

    Attributes:
        folder: Folder of the comparison.
        runs: Runs to train and test.
        slots: How many runs are executed at the same time; None for as many as possible.
        executor: Who executes them.
    """

    folder: Path
    runs: list[PlannedRun]
    slots: int | None
    executor: Executor = field(default_factory=LocalExecutor)

    @property
    def sizes(self) -> list[int]:
        """Image sizes at which all runs are tested with no other change from training."""
        plain = [{one.size for one in run.conditions if one.is_plain} for run in self.runs]
        return sorted(set.intersection(*plain))

    def check_executor(self) -> None:
        """Raise if the executor cannot execute the missing runs, as far as that is known before the folder is created.

        Raises:
            UserError: If it cannot.
            ImportError: If a package is missing.
        """
        if not all(run.is_done() for run in self.runs):
            self.executor.check(self.folder)


def make_plan(
    content: dict[str, Any],
    overrides: dict[str, str],
    *,
    encodings: Sequence[str | type[PositionEncoding]],
    seeds: Sequence[int],
    sizes: Sequence[int] | None,
    examples: int | None,
    folder: Path,
    slots: int | None,
    source: str = "",
    executor: Executor | None = None,
) -> Plan:
    """Return the plan of a comparison, with every configuration checked.

    Args:
        content: The recipe, as `read_config` returns it.
        overrides: Fields to override, by dotted name, with values as text.
        encodings: Encodings to compare: names with options, as `parse_encoding` reads them, or classes.
        seeds: Seeds for every encoding.
        sizes: Image sizes to evaluate at; None for the training size.
        examples: Number of test examples; None for all.
        folder: Folder of the comparison.
        slots: How many runs are executed at the same time; None for the executor's default.
        source: File name of the recipe, for messages.
        executor: Who executes the runs; None for processes of this machine.

    Raises:
        ValueError: If a setting is invalid, or the folder contains runs of another recipe.
    """
    texts = dict.fromkeys(map(encoding_text, encodings))
    wanted = [(text, parse_encoding(text), seed) for text in texts for seed in dict.fromkeys(seeds)]
    if not wanted:
        raise InputError("encodings and seeds must not be empty: pass at least one of each")
    executor = executor or LocalExecutor()
    base = parse_config(content, overrides, source)
    slots = executor.slots(base, slots, len(wanted))
    threads = executor.threads(base, slots)
    runs = []
    for text, (encoding, options), seed in wanted:
        fields = overrides | {"model.encoding": encoding, "training.seed": str(seed)}
        fields |= {"model.options": yaml.safe_dump(options)} if options else {}
        config = parse_config(content, fields, source)
        fields |= config.model.unsupported_fields()
        fields |= {"hardware.threads": str(threads)} if config.hardware.threads is None else {}
        config = parse_config(content, fields, source)
        if config.hardware.world_size > 1:
            raise InputError(
                "hardware.devices and hardware.nodes must be 1, because a comparison trains each run on one device and "
                "several runs in parallel: leave them out, or train single runs with liere train"
            )
        if executor.is_here:
            config.hardware.check()
        for size in (config.data.side, *(sizes or ())):
            config.check_size(size)
        build_model(config)  # reports invalid settings before training starts
        conditions = tuple(Condition(size) for size in dict.fromkeys(sizes or [config.data.side]))
        run = PlannedRun(folder / "runs" / f"{file_name(text)}-seed{seed}", config, conditions, examples)
        check_recipe(run)
        runs.append(run)
    return Plan(folder, runs, slots, executor)
