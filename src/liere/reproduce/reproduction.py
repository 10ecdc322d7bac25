"""The runs behind a table: find the finished ones and train the missing ones."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from liere.comparison.execution import run_plan
from liere.comparison.executors.contract import Executor
from liere.comparison.executors.local import LocalExecutor
from liere.comparison.plan import Plan
from liere.comparison.planned_run import PlannedRun, check_recipe
from liere.encodings.registry import find_encoding
from liere.errors import InputError
from liere.files.shipped import shipped_folder
from liere.reproduce.catalog import Entry
from liere.reproduce.experiment import Experiment, read_experiment
from liere.reproduce.results import Results
from liere.reproduce.wanted_runs import Key, Wanted, plan_runs, unique_runs
from liere.runs.archive import unpacked
from liere.runs.config import RunConfig
from liere.runs.encoding_text import parse_encoding
from liere.runs.run import Run, open_run

__all__ = ["Reproduction", "committed_runs", "prepare", "with_choice"]


@dataclass(frozen=True)
class Reproduction:
    """A table or figure with the runs that it needs.

    Attributes:
        entry: The table or figure.
        experiment: Its experiment.
        wanted: Its runs, with their role in the table.
        places: Folders of runs: missing runs are trained in the first; the others contain existing runs as folders or
            archives.
    """

    entry: Entry
    experiment: Experiment
    wanted: list[Wanted]
    places: tuple[Path, ...]

    def runs(self) -> list[PlannedRun]:
        """Return every run once; runs that others start from come first."""
        return list(unique_runs(self.wanted))

    def locate(self, planned: PlannedRun) -> Path | None:
        """Return the folder of a run if it is trained and tested as planned, else None."""
        for place in self.places:
            folder = unpacked(place / planned.folder.name)
            if planned.is_done(folder) and (not self.entry.needs_weights or open_run(folder).final_weights.exists()):
                return folder
        return None

    def missing(self) -> list[PlannedRun]:
        """Return the runs that are not done yet; runs that others start from come first."""
        runs = self.runs()
        missing = {run.folder: run for run in runs if self.locate(run) is None}
        sources = {run.config.training.start_from for run in missing.values()}
        for run in runs:
            if run.folder.name in sources and not (run.folder / "final.safetensors").exists():
                missing[run.folder] = run
        for folder, run in missing.items():
            if run.is_trained() and not (folder / "final.safetensors").exists():
                raise InputError(
                    f"run {folder} is finished, but its weights are needed and missing: delete the folder to retrain it"
                )
        return [run for run in runs if run.folder in missing]

    def check(self, executor: Executor | None = None) -> None:
        """Raise if the missing runs cannot be trained: missing data, invalid devices, or runs of another recipe.

        Args:
            executor: Who executes the runs; the hardware of other machines is not checked.
        """
        checked: list[RunConfig] = []
        lacking: dict[str, str] = {}
        for run in self.missing():
            check_recipe(run)
            if run.config.hardware.world_size > 1:
                raise InputError(
                    "hardware.devices and hardware.nodes must be 1, because each run uses one device and several runs "
                    "train in parallel: to use several devices, write the configurations with --configs and train those"
                )
            if executor is None or executor.is_here:
                run.config.hardware.check()
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
            hint = "; to skip it: " + " ".join(f"--only {shlex.quote(name)}" for name in others) if others else ""
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
        executor: Executor | None = None,
    ) -> None:
        """Train and test the missing runs, several at a time.

        Args:
            slots: How many runs are executed at the same time; None for the executor's default.
            watch: Called every moment with the active runs.
            ended: Called with each finished run.
            failed: Called with one line of text for each failed run.
            executor: Who executes the runs; None for processes of this machine.
        """
        for plan in self.plans(slots, executor):
            run_plan(plan, watch=watch, ended=ended, failed=failed)

    def plans(self, slots: int | None, executor: Executor | None = None) -> list[Plan]:
        """Return the missing runs as one or two plans: fine-tuning comes after the runs that it starts from."""
        executor, missing = executor or LocalExecutor(), self.missing()
        plans = []
        for is_second in (False, True):
            part = [run for run in missing if (run.config.training.start_from is not None) == is_second]
            if part:
                at_a_time = executor.slots(part[0].config, slots, len(part))
                part = [_with_threads(run, executor, at_a_time) for run in part]
                plans.append(Plan(self.places[0], part, at_a_time, executor))
        return plans

    def results(self) -> Results:
        """Return the results of the finished runs; missing runs are left out."""
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
    """Read the experiment of a table, and return the table with the runs that it needs.

    Args:
        entry: The table or figure; it must need runs.
        scale: `"small"` or `"paper"`.
        overrides: Fields to override, by dotted name, with values as text.
        places: Folders of runs; missing runs are trained in the first.
        only: Data sets to include; empty for all.
        seeds: Seeds to use instead of those of the experiment.
        encodings: Encodings to use instead of those of the experiment.
        data: Folder of the data sets, instead of ./data.
        smoke: Whether it is a smoke test with tiny models.

    Raises:
        ValueError: If a setting is invalid.
    """
    experiment = read_experiment(entry.experiment, scale)
    for name in only:
        if name not in experiment.data:
            raise InputError(
                f"--only {name!r} is not a data set of {entry.name} at this scale: choose from "
                f"{', '.join(experiment.data)}"
            )
    if only:
        experiment = experiment.model_copy(update={"data": {name: experiment.data[name] for name in only}})
    for text in encodings:
        find_encoding(parse_encoding(text)[0])  # a misspelled name is reported as such
    if encodings and (reason := entry.refuse(encodings)):
        raise InputError(f"{entry.name} cannot be made with --encodings {' '.join(encodings)}: {reason}")
    experiment = with_choice(entry.narrow(experiment), seeds, encodings)
    wanted = plan_runs(experiment, overrides, places[0], data=data, smoke=smoke)
    return Reproduction(entry, experiment, wanted, tuple(places))


def with_choice(experiment: Experiment, seeds: Sequence[int], encodings: Sequence[str]) -> Experiment:
    """Return an experiment with other seeds and encodings; variations for some encodings only stay restricted."""
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
    """Return the folder of the runs that come with the project, without weights; None if it does not exist."""
    results = shipped_folder("results")
    folder = results / "reproduce" / scale / "runs" if results else None
    return folder if folder and folder.is_dir() else None


def _with_threads(run: PlannedRun, executor: Executor, slots: int | None) -> PlannedRun:
    if run.config.hardware.threads is not None:
        return run
    hardware = run.config.hardware.model_copy(update={"threads": executor.threads(run.config, slots)})
    return replace(run, config=run.config.model_copy(update={"hardware": hardware}))
