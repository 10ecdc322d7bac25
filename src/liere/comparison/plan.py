"""Several encodings, several seeds, one recipe: which runs there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml

from liere.comparison.planned_run import PlannedRun, check_recipe
from liere.encodings import PositionEncoding
from liere.errors import InputError
from liere.machine import available_cores
from liere.runs.conditions import Condition
from liere.runs.config import RunConfig
from liere.runs.config_file import parse_config
from liere.runs.encoding_text import encoding_text, file_name, parse_encoding
from liere.runs.model import build_model

__all__ = ["Plan", "default_slots", "make_plan"]


@dataclass(frozen=True)
class Plan:
    """Several runs.

    Attributes:
        folder: Where they are kept.
        runs: What to train and test.
        slots: Processes at a time.
    """

    folder: Path
    runs: list[PlannedRun]
    slots: int

    @property
    def sizes(self) -> list[int]:
        """Image sizes that all runs are tested at, with nothing else other than in training."""
        plain = [{one.size for one in run.conditions if one.is_plain} for run in self.runs]
        return sorted(set.intersection(*plain))


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
) -> Plan:
    """Say what a comparison will run, with everything checked.

    Args:
        content: The recipe, as `read_config` returns it.
        overrides: Fields to override, by dotted name, as text of the command line.
        encodings: What to compare: names with options, as `parse_encoding` reads them, or classes.
        seeds: Seeds of every encoding.
        sizes: Image sizes to evaluate at; None for the size in training.
        examples: Test examples; None for all.
        folder: Where to keep it.
        slots: Processes at a time; None for one per GPU, or else one per core.
        source: Where the recipe came from, for messages.

    Raises:
        ValueError: If something does not fit, or the folder holds runs of another recipe.
    """
    texts = dict.fromkeys(map(encoding_text, encodings))
    wanted = [(text, parse_encoding(text), seed) for text in texts for seed in dict.fromkeys(seeds)]
    if not wanted:
        raise InputError("a comparison needs at least one encoding and one seed")
    slots = min(slots or default_slots(parse_config(content, overrides, source)), len(wanted))
    threads = max(available_cores() // slots, 1)
    runs = []
    for text, (encoding, options), seed in wanted:
        fields = overrides | {"model.encoding": encoding, "training.seed": str(seed)}
        fields |= {"model.options": yaml.safe_dump(options)} if options else {}
        config = parse_config(content, fields, source)
        fields |= config.model.unsupported_fields()
        fields |= {"hardware.threads": str(threads)} if config.hardware.threads is None else {}
        config = parse_config(content, fields, source)
        config.hardware.check()
        if config.hardware.devices * config.hardware.nodes > 1:
            raise InputError(
                f"hardware.devices is {config.hardware.devices}, but a comparison trains each run on one device, "
                "several runs at a time: leave it out, or train with liere train"
            )
        for size in (config.data.side, *(sizes or ())):
            config.check_size(size)
        build_model(config)  # what does not fit is told now
        conditions = tuple(Condition(size) for size in dict.fromkeys(sizes or [config.data.side]))
        run = PlannedRun(folder / "runs" / f"{file_name(text)}-seed{seed}", config, conditions, examples)
        check_recipe(run)
        runs.append(run)
    return Plan(folder, runs, slots)


def default_slots(config: RunConfig) -> int:
    """Return how many runs to train at a time: one per GPU, or else one per core."""
    if config.hardware.accelerator == "cpu":
        return available_cores()
    return torch.cuda.device_count() or (1 if torch.backends.mps.is_available() else available_cores())
