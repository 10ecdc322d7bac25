"""Several encodings, several seeds, one recipe: which runs there are, and how they are made."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml

from liere.comparison.jobs import Job, Slot, run_jobs
from liere.training.config import RunConfig
from liere.training.config_file import load_yaml, parse_config
from liere.training.cost import Cost, estimate_cost
from liere.training.model import build_model
from liere.training.processes import available_cores
from liere.training.runs import Run, create_run, open_run

__all__ = ["Plan", "PlannedRun", "make_plan", "parse_encoding", "run_plan"]

LOCK_PATIENCE = 30.0  # seconds: the processes of a comparison that was killed need a step to notice


@dataclass(frozen=True)
class PlannedRun:
    """One run of a comparison, and what it will cost."""

    folder: Path
    config: RunConfig
    cost: Cost

    def is_done(self, sizes: Sequence[int], examples: int | None) -> bool:
        """Return whether it is trained, and evaluated at these sizes."""
        if not (self.folder / "config.yaml").exists():
            return False
        run = open_run(self.folder)
        wanted = {size: len(run.config.data.load("test", length=examples)) for size in sizes}
        found = {record["size"]: record["examples"] for record in run.evaluations("final")}
        return run.is_finished and wanted.items() <= found.items()


@dataclass(frozen=True)
class Plan:
    """A comparison.

    Attributes:
        folder: Where it is kept; its runs are in `runs/`.
        runs: What to train and evaluate.
        sizes: Image sizes to evaluate at.
        examples: Test examples; None for all.
        slots: Processes at a time.
    """

    folder: Path
    runs: list[PlannedRun]
    sizes: list[int]
    examples: int | None
    slots: int


def parse_encoding(text: str) -> tuple[str, dict[str, Any]]:
    """Read an encoding with options.

    Example:
        >>> parse_encoding("liere8"), parse_encoding("absolute:init_std=1")
        (('liere8', {}), ('absolute', {'init_std': 1}))
    """
    name, colon, rest = text.partition(":")
    options = {}
    for part in re.split(r",(?![^\[{]*[\]}])", rest) if colon else ():  # not at commas in brackets
        option, equals, value = part.partition("=")
        try:
            options[option] = load_yaml(value)
        except yaml.YAMLError:
            equals = ""
        if not equals or not option:
            raise ValueError(f"encoding {text!r} has an option without a value: write absolute:init_std=1,other=2")
    return name, options


def make_plan(
    content: dict[str, Any],
    overrides: dict[str, str],
    *,
    encodings: Sequence[str],
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
        overrides: Fields that are to be other than in the recipe.
        encodings: What to compare, as `parse_encoding` reads it.
        seeds: Seeds of every encoding.
        sizes: Image sizes to evaluate at; None for the size in training.
        examples: Test examples; None for all.
        folder: Where to keep it.
        slots: Processes at a time; None for one a GPU, or else one a core.
        source: Where the recipe came from, for messages.

    Raises:
        ValueError: If something does not fit, or the folder holds runs of another recipe.
    """
    wanted = [(name, parse_encoding(name), seed) for name in dict.fromkeys(encodings) for seed in dict.fromkeys(seeds)]
    if not wanted:
        raise ValueError("a comparison needs at least one encoding and one seed")
    slots = min(slots or _default_slots(parse_config(content, overrides, source)), len(wanted))
    threads = max(available_cores() // slots, 1)
    runs = []
    for name, (encoding, options), seed in wanted:
        fields = overrides | {"model.encoding": encoding, "training.seed": str(seed)}
        fields |= {"model.options": yaml.safe_dump(options)} if options else {}
        config = parse_config(content, fields, source)
        if config.hardware.threads is None:
            config = parse_config(content, fields | {"hardware.threads": str(threads)}, source)
        config.hardware.check()
        if config.hardware.devices * config.hardware.nodes > 1:
            raise ValueError(
                f"hardware.devices is {config.hardware.devices}, but a comparison trains each run on one device, "
                "several runs at a time: leave it out, or train with liere train"
            )
        for size in (config.data.side, *(sizes or ())):
            config.check_size(size)
        cost = estimate_cost(config, build_model(config))
        run = PlannedRun(folder / "runs" / f"{_file_name(name)}-seed{seed}", config, cost)
        _check_recipe(run)
        runs.append(run)
    return Plan(folder, runs, list(sizes or [runs[0].config.data.side]), examples, slots)


def run_plan(
    plan: Plan,
    *,
    watch: Callable[[list[Run]], None],
    ended: Callable[[Run], None],
    failed: Callable[[str], None],
) -> None:
    """Train and evaluate what is missing.

    Args:
        plan: The comparison.
        watch: Told twice a second which runs are at work.
        ended: Told of each run that is done, those that were done before first.
        failed: Told of each run that failed, in a line.
    """
    missing: dict[str, PlannedRun] = {}
    for planned in plan.runs:
        if planned.is_done(plan.sizes, plan.examples):
            ended(open_run(planned.folder))
        else:
            missing[planned.folder.name] = planned
    # The longest first: a long one alone at the end would leave others idle.
    order = sorted(missing.values(), key=lambda planned: -planned.cost.operations)
    jobs = [
        Job(planned.folder.name, _train_and_evaluate, (planned, plan.sizes, plan.examples), _log_file(planned))
        for planned in order
    ]

    def note_end(job: Job, code: int) -> None:
        if code:
            failed(f"{job.name} failed with exit code {code}: see {job.log}")
        else:
            ended(open_run(missing[job.name].folder))

    def note_progress(running: list[Job]) -> None:
        folders = [missing[job.name].folder for job in running]
        watch([open_run(folder) for folder in folders if (folder / "config.yaml").exists()])

    run_jobs(jobs, slots=plan.slots, watch=note_progress, ended=note_end)


def _default_slots(config: RunConfig) -> int:
    """Return how many runs to train at a time: one a GPU, or else one a core."""
    if config.hardware.accelerator == "cpu":
        return available_cores()
    return torch.cuda.device_count() or (1 if torch.backends.mps.is_available() else available_cores())


def _train_and_evaluate(planned: PlannedRun, sizes: list[int], examples: int | None, slot: Slot) -> None:
    """Do what is missing of a run; in a process of its own."""
    if torch.cuda.device_count() > 1:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        devices = visible.split(",") if visible else [str(device) for device in range(torch.cuda.device_count())]
        os.environ["CUDA_VISIBLE_DEVICES"] = devices[slot.number % len(devices)]
    from liere.evaluation.evaluate import evaluate
    from liere.training.fit import train
    from liere.training.survival import StoppedError, StopRequest

    def say(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    exists = (planned.folder / "config.yaml").exists()
    run = open_run(planned.folder) if exists else create_run(planned.folder, planned.config)
    try:
        train(run, say=say, request=StopRequest(parent=slot.parent), patience=LOCK_PATIENCE)
    except StoppedError as stop:
        say(f"stopped {stop}")
        sys.exit(130)
    evaluate(run, sizes, examples=examples, say=say)


def _check_recipe(planned: PlannedRun) -> None:
    if (planned.folder / "config.yaml").exists():
        there = open_run(planned.folder).config
        if there.fingerprint != planned.config.fingerprint:
            raise ValueError(f"{planned.folder} was made by another recipe: choose another --out, or delete it")


def _file_name(encoding: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in encoding)


def _log_file(planned: PlannedRun) -> Path:
    # Beside the run: its folder appears as a whole, by itself.
    return planned.folder.with_name(f"{planned.folder.name}.log")
