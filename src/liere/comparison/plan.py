"""Several encodings, several seeds, one recipe: which runs there are, and how they are made."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import yaml

from liere.comparison.local_processes import Job, Slot, run_jobs
from liere.files.reading import check_regular, open_regular
from liere.machine import available_cores
from liere.runs.conditions import Condition
from liere.runs.config import RunConfig
from liere.runs.config_file import load_yaml, parse_config
from liere.runs.cost import estimate_operations
from liere.runs.model import build_model
from liere.runs.run import Run, create_run, open_run

__all__ = [
    "Plan",
    "PlannedRun",
    "check_recipe",
    "default_slots",
    "file_name",
    "make_plan",
    "parse_encoding",
    "run_plan",
]

LOG_BYTES = 65_536  # of the end of a log, to find its last line
LOCK_PATIENCE = 30.0  # seconds: the processes of a comparison that was killed need a step to notice


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
    slots = min(slots or default_slots(parse_config(content, overrides, source)), len(wanted))
    threads = max(available_cores() // slots, 1)
    runs = []
    for name, (encoding, options), seed in wanted:
        fields = overrides | {"model.encoding": encoding, "training.seed": str(seed)}
        fields |= {"model.options": yaml.safe_dump(options)} if options else {}
        config = parse_config(content, fields, source)
        fields |= config.model.unsupported_fields()
        fields |= {"hardware.threads": str(threads)} if config.hardware.threads is None else {}
        config = parse_config(content, fields, source)
        config.hardware.check()
        if config.hardware.devices * config.hardware.nodes > 1:
            raise ValueError(
                f"hardware.devices is {config.hardware.devices}, but a comparison trains each run on one device, "
                "several runs at a time: leave it out, or train with liere train"
            )
        for size in (config.data.side, *(sizes or ())):
            config.check_size(size)
        build_model(config)  # what does not fit is told now
        conditions = tuple(Condition(size) for size in dict.fromkeys(sizes or [config.data.side]))
        run = PlannedRun(folder / "runs" / f"{file_name(name)}-seed{seed}", config, conditions, examples)
        check_recipe(run)
        runs.append(run)
    return Plan(folder, runs, slots)


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
        if planned.is_done():
            ended(open_run(planned.folder))
        else:
            missing[planned.folder.name] = planned
    # The longest first: a long one alone at the end would leave others idle.
    order = sorted(missing.values(), key=lambda planned: -planned.operations)
    jobs = [Job(planned.folder.name, _train_and_evaluate, (planned,), _log_file(planned)) for planned in order]

    def note_end(job: Job, code: int) -> None:
        if code:
            failed(f"{job.name} failed with exit code {code} ({_last_line(job.log)}): see {job.log}")
        else:
            ended(open_run(missing[job.name].folder))

    def note_progress(running: list[Job]) -> None:
        folders = [missing[job.name].folder for job in running]
        watch([open_run(folder) for folder in folders if (folder / "config.yaml").exists()])

    run_jobs(jobs, slots=plan.slots, watch=note_progress, ended=note_end)


def default_slots(config: RunConfig) -> int:
    """Return how many runs to train at a time: one a GPU, or else one a core."""
    if config.hardware.accelerator == "cpu":
        return available_cores()
    return torch.cuda.device_count() or (1 if torch.backends.mps.is_available() else available_cores())


def _train_and_evaluate(planned: PlannedRun, slot: Slot) -> None:
    """Do what is missing of a run; in a process of its own."""
    if torch.cuda.device_count() > 1:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        devices = visible.split(",") if visible else [str(device) for device in range(torch.cuda.device_count())]
        os.environ["CUDA_VISIBLE_DEVICES"] = devices[slot.number % len(devices)]
    from liere.evaluation.evaluate import evaluate
    from liere.training.fit import train
    from liere.training.stopping import StoppedError, StopRequest

    def say(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    exists = (planned.folder / "config.yaml").exists()
    # A run that is resumed has the hardware and the place of the data that are asked for now.
    root = getattr(planned.config.data, "root", None)
    there = Run(planned.folder, planned.config, None if root is None else Path(root))
    run = there if exists else create_run(planned.folder, planned.config)
    try:
        train(run, say=say, request=StopRequest(parent=slot.parent), patience=LOCK_PATIENCE)
    except StoppedError as stop:
        say(f"stopped {stop}")
        sys.exit(130)
    if untested := planned.untested(run):
        with _ending_with(slot.parent):
            evaluate(run, untested, examples=planned.examples, say=say)


@contextmanager
def _ending_with(parent: Connection) -> Iterator[None]:
    """End this process at once where its parent ends: training stops by itself, an evaluation has nothing to save."""
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(0.5):
            if parent.poll():  # the writing end is gone
                os._exit(1)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()


def check_recipe(planned: PlannedRun) -> None:
    """Raise `ValueError` if there is a run of another recipe where one is planned, or no log can be written."""
    if (log := _log_file(planned)).exists():
        check_regular(log)
    if (planned.folder / "config.yaml").exists():
        there = open_run(planned.folder).config
        if there.fingerprint != planned.config.fingerprint:
            raise ValueError(f"{planned.folder} was made by another recipe: choose another --out, or delete it")


def file_name(encoding: str) -> str:
    """Return a name as a file can have it."""
    return "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in encoding)


def _last_line(log: Path) -> str:
    if not log.exists():
        return "it said nothing"
    with open_regular(log) as file:
        file.seek(max(0, log.stat().st_size - LOG_BYTES))
        lines = file.read(LOG_BYTES).decode("utf-8", errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


def _log_file(planned: PlannedRun) -> Path:
    # Beside the run: its folder appears as a whole, by itself.
    return planned.folder.with_name(f"{planned.folder.name}.log")
