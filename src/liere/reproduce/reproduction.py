"""Run what a table needs and is not there yet, and find the rest."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from liere.comparison.execution import run_plan
from liere.comparison.plan import Plan, default_slots
from liere.comparison.planned_run import PlannedRun, check_recipe
from liere.errors import InputError
from liere.files.shipped import shipped_folder
from liere.machine import available_cores
from liere.reproduce.catalog import Entry
from liere.reproduce.experiment import Experiment, read_experiment
from liere.reproduce.results import Results
from liere.reproduce.wanted_runs import Key, Wanted, plan_runs, unique_runs
from liere.runs.archive import unpacked
from liere.runs.config import RunConfig
from liere.runs.run import Run, open_run

__all__ = ["Reproduction", "committed_runs", "prepare", "with_choice"]


@dataclass(frozen=True)
class Reproduction:
    """A table or figure with the runs that it needs.

    Attributes:
        entry: The table or figure.
        experiment: Its experiment.
        wanted: Its runs, by what they are in the table.
        places: Folders of runs: the first is where missing ones are made, others hold what was made before, as folders
            or as archives.
    """

    entry: Entry
    experiment: Experiment
    wanted: list[Wanted]
    places: tuple[Path, ...]

    def runs(self) -> list[PlannedRun]:
        """Return all runs, each once, those that others start from first."""
        return list(unique_runs(self.wanted))

    def locate(self, planned: PlannedRun) -> Path | None:
        """Return the folder of a finished run, tested as asked; None if it is not there."""
        for place in self.places:
            folder = unpacked(place / planned.folder.name)
            if planned.is_done(folder) and (not self.entry.needs_weights or open_run(folder).final_weights.exists()):
                return folder
        return None

    def missing(self) -> list[PlannedRun]:
        """Return the runs that are still to be made, those that others start from first."""
        runs = self.runs()
        missing = {run.folder: run for run in runs if self.locate(run) is None}
        sources = {run.config.training.start_from for run in missing.values()}
        for run in runs:
            if run.folder.name in sources and not (run.folder / "final.safetensors").exists():
                missing[run.folder] = run
        for folder, run in missing.items():
            if run.is_trained() and not (folder / "final.safetensors").exists():
                raise InputError(f"run {folder} is finished, but its weights are gone and needed: delete the folder")
        return [run for run in runs if run.folder in missing]

    def check(self) -> None:
        """Raise if something is in the way of the missing runs: data, devices, or runs of another recipe."""
        checked: list[RunConfig] = []
        lacking: dict[str, str] = {}
        for run in self.missing():
            check_recipe(run)
            run.config.hardware.check()
            if run.config.hardware.devices * run.config.hardware.nodes > 1:
                raise InputError(
                    "hardware.devices and hardware.nodes must be 1: runs are made on one device each, several at a "
                    "time; for runs on several devices write their configurations with --configs, and train these"
                )
            if all(run.config.data != config.data for config in checked):
                checked.append(run.config)
                try:
                    for size in {condition.size for condition in run.conditions}:
                        run.config.check_size(size)
                    run.config.data.load("train")
                except FileNotFoundError as error:
                    for label in self._labels(run):
                        lacking[label] = f"{error} {self.experiment.data[label].how_to_get}".strip()
        if lacking:
            others = [name for name in self.experiment.data if name not in lacking]
            hint = "; or leave it out: " + " ".join(f"--only {shlex.quote(name)}" for name in others) if others else ""
            raise FileNotFoundError("; ".join(dict.fromkeys(lacking.values())) + hint)

    def _labels(self, run: PlannedRun) -> set[str]:
        return {one.key.data for one in self.wanted if one.planned.folder == run.folder}

    def run(
        self,
        *,
        slots: int | None,
        watch: Callable[[list[Run]], None],
        ended: Callable[[Run], None],
        failed: Callable[[str], None],
    ) -> None:
        """Make the missing runs, several at a time.

        Args:
            slots: Processes at a time; None for one per GPU, or else one per core.
            watch: Told twice a second which runs are at work.
            ended: Told of each run that is done.
            failed: Told of each run that failed, in a line.
        """
        missing = self.missing()
        for is_second in (False, True):  # what starts from other runs comes after them
            part = [run for run in missing if (run.config.training.start_from is not None) == is_second]
            if part:
                at_a_time = min(slots or default_slots(part[0].config), len(part))
                part = [_with_threads(run, at_a_time) for run in part]
                run_plan(Plan(self.places[0], part, at_a_time), watch=watch, ended=ended, failed=failed)

    def results(self) -> Results:
        """Return what the runs found; those that are not there are left out."""
        runs: dict[Key, list[Run]] = {}
        for one in self.wanted:
            folder = self.locate(one.planned)
            if folder is not None:
                runs.setdefault(one.key, []).append(open_run(folder))
        return Results(self.experiment, runs)


def prepare(
    entry: Entry,
    scale: str,
    overrides: dict[str, str],
    *,
    places: Sequence[Path],
    only: Sequence[str] = (),
    seeds: Sequence[int] = (),
    encodings: Sequence[str] = (),
    data: Path | None = None,
    smoke: bool = False,
) -> Reproduction:
    """Read a table's experiment and say which runs it needs.

    Args:
        entry: The table or figure; it must need runs.
        scale: `"small"` or `"paper"`.
        overrides: Fields to override, by dotted name, as text.
        places: Folders of runs: the first is where missing ones are made.
        only: Data sets to take; all, if empty.
        seeds: Other seeds than those of the experiment.
        encodings: Other encodings.
        data: Folder of the data sets, instead of ./data.
        smoke: Whether it is a rehearsal, as small as can be.

    Raises:
        ValueError: If something does not fit.
    """
    experiment = read_experiment(entry.experiment, scale)
    for name in only:
        if name not in experiment.data:
            raise InputError(
                f"--only {name!r} is not in {entry.name} at this scale: it has {', '.join(experiment.data)}"
            )
    if only:
        experiment = experiment.model_copy(update={"data": {name: experiment.data[name] for name in only}})
    if encodings and (reason := entry.refuse(encodings)):
        raise InputError(f"{entry.name} cannot be made with --encodings {' '.join(encodings)}: {reason}")
    experiment = with_choice(entry.narrow(experiment), seeds, encodings)
    wanted = plan_runs(experiment, overrides, places[0], data=data, smoke=smoke)
    return Reproduction(entry, experiment, wanted, tuple(places))


def with_choice(experiment: Experiment, seeds: Sequence[int], encodings: Sequence[str]) -> Experiment:
    """Take other seeds and encodings, each once; what is varied for some encodings only stays limited to these."""
    columns = dict(experiment.data)
    changes: dict[str, object] = {}
    for name, chosen in (("seeds", list(dict.fromkeys(seeds))), ("encodings", list(dict.fromkeys(encodings)))):
        if chosen:
            changes[name] = chosen
            columns = {label: column.model_copy(update={name: None}) for label, column in columns.items()}
    if encodings:
        changes["vary"] = {
            variant: fields | {"encodings": [name for name in fields["encodings"] if name in encodings]}
            if "encodings" in fields
            else fields
            for variant, fields in experiment.vary.items()
            if "encodings" not in fields or not set(fields["encodings"]).isdisjoint(encodings)
        }
    return experiment.model_copy(update=changes | {"data": columns})


def committed_runs(scale: str) -> Path | None:
    """Return the folder of runs that are part of the project, without weights; None where it is not there."""
    results = shipped_folder("results")
    folder = results / "reproduce" / scale / "runs" if results else None
    return folder if folder and folder.is_dir() else None


def _with_threads(run: PlannedRun, slots: int) -> PlannedRun:
    if run.config.hardware.threads is not None:
        return run
    hardware = run.config.hardware.model_copy(update={"threads": max(available_cores() // slots, 1)})
    return replace(run, config=run.config.model_copy(update={"hardware": hardware}))
