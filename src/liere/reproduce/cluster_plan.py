"""A plan of many runs on a cluster: GPU hours, schedule, storage and the cost of failures, without training."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from liere.comparison.planned_run import PlannedRun
from liere.errors import InputError
from liere.reproduce.gpu_sheets import Gpu
from liere.reproduce.listing import NOT_COUNTED
from liere.reproduce.node_failures import GPUS_PER_NODE, RESTART, Trial, simulate_failures
from liere.reproduce.reproduction import Reproduction
from liere.reproduce.run_schedule import Schedule, Task, make_schedule
from liere.runs.config import RunConfig
from liere.runs.cost import duration, scaled
from liere.runs.model import build_model, count_parameters
from liere.terminal.text_table import text_table

__all__ = ["MissingRuns", "describe_cluster", "find_missing"]

TRIALS = 200
MOST_FAILURES = 24
"""Failures of a node per day; the plan of a cluster whose nodes fail more often would be of no use."""
BAR = 40  # characters
NARROW = 0.5
"""Share of the time that GPUs are busy, below which runs should use several GPUs."""
TEST_EXAMPLES = {"imagenet": 50_000, "ucf101": 3_783}
USUAL_TEST_EXAMPLES = 10_000
PREDICTION_BYTES = 24  # of a line of predictions
# Adam keeps two averages of each parameter. The last two checkpoints, the best and the final weights are kept.
CHECKPOINT_BYTES, KEPT_CHECKPOINTS, WEIGHTS_BYTES, KEPT_WEIGHTS = 4 * 3, 2, 4, 2


@dataclass(frozen=True)
class MissingRuns:
    """The runs of several tables that are still to be trained.

    Attributes:
        runs: Each run once.
        tables: Names of the tables that need each run, by the name of its folder.
        finished: Number of runs that are trained already.
        unknown: Number of runs whose cost is unknown without their data; these are not in `runs`.
    """

    runs: list[PlannedRun]
    tables: dict[str, tuple[str, ...]]
    finished: int
    unknown: int


def find_missing(reproductions: Iterable[Reproduction]) -> MissingRuns:
    """Return the runs that several tables still need."""
    runs: dict[str, PlannedRun] = {}
    tables: dict[str, tuple[str, ...]] = {}
    every, unknown = set[str](), set[str]()
    for reproduction in reproductions:
        every |= {run.folder.name for run in reproduction.runs()}
        for run in reproduction.missing():
            name = run.folder.name
            if run.is_trained():
                continue
            if run.config.data.facts_need_files and not run.config.data.path.exists():
                unknown.add(name)
                continue
            runs[name] = run
            tables[name] = (*tables.get(name, ()), reproduction.entry.name)
    return MissingRuns(list(runs.values()), tables, len(every) - len(runs) - len(unknown), len(unknown))


def describe_cluster(missing: MissingRuns, gpu: Gpu, gpus: int, failures_per_day: float) -> list[str]:
    """Return lines on what the runs cost on a cluster: work, schedule, storage and failures.

    Args:
        missing: The runs.
        gpu: Kind of GPU.
        gpus: Number of GPUs, in nodes of 8.
        failures_per_day: Mean number of nodes that fail per day, in the whole cluster.
    """
    count = f"runs: {len(missing.runs)} to train, {missing.finished} finished"
    lines = [count + (f", {missing.unknown} of unknown cost, because their data is missing" if missing.unknown else "")]
    if not missing.runs:
        return lines
    per_run = max(_gpus_of(run) for run in missing.runs)
    if per_run > gpus:
        raise InputError(f"--gpus {gpus} is not enough for a run on {per_run} GPUs: use fewer hardware.devices")
    tasks = [_task(run, gpu, missing.tables[run.folder.name]) for run in missing.runs]
    schedule = make_schedule(tasks, min(gpus // per_run, len(tasks)))
    idle = gpus - schedule.slots * per_run
    failures_of_nodes = _failures(schedule, failures_per_day, per_run, gpus)
    operations = sum(run.operations for run in missing.runs)
    lines += [f"GPU: {gpu.describe(kind)}" for kind in sorted({run.config.hardware.precision for run in missing.runs})]
    lines.append(f"work: {scaled(operations)} operations, {_hours(schedule.work * per_run)} GPU hours ({NOT_COUNTED})")
    longest = max(tasks, key=lambda task: task.seconds)
    used, each = schedule.slots * per_run, "one GPU" if per_run == 1 else f"{per_run} GPUs"
    lines += [
        f"schedule: {duration(schedule.makespan)} on {used:,} GPUs, {each} per run, the longest first; GPUs are busy "
        f"{100 * schedule.utilization:.0f} % of the time" + (f"; {idle:,} GPUs are not used" if idle else ""),
        f"longest run: {longest.name}, {duration(longest.seconds)}",
        *(
            ["To make it shorter, use several GPUs per run: --hardware.devices 8"]
            if _is_narrow(schedule, gpus // per_run)
            else []
        ),
        "",
        *_table(schedule, per_run),
        "",
        *_storage(missing.runs, schedule.slots),
        "",
        *failures_of_nodes,
    ]
    return lines


def _task(run: PlannedRun, gpu: Gpu, tables: tuple[str, ...]) -> Task:
    training, hardware = run.config.training, run.config.hardware
    seconds = run.operations / (gpu.speed(hardware.precision) * _gpus_of(run))
    steps = min(training.checkpoint_every, training.validate_every)  # a validation also writes a checkpoint
    return Task(run.folder.name, seconds, seconds * min(steps / training.steps, 1), training.start_from, tables)


def _gpus_of(run: PlannedRun) -> int:
    return run.config.hardware.devices * run.config.hardware.nodes


def _is_narrow(schedule: Schedule, slots: int) -> bool:
    """Return whether single runs, rather than the number of GPUs, decide how long the schedule takes."""
    return len(schedule.placed) > 1 and schedule.work < NARROW * slots * schedule.makespan


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.0f}"


def _table(schedule: Schedule, per_run: int) -> list[str]:
    """Return the time at which each table has all its runs, as a chart: a line lasts from its first run to its last."""
    rows = []
    for name in dict.fromkeys(name for one in schedule.placed for name in one.task.groups):
        own = [one for one in schedule.placed if name in one.task.groups]
        start, end = min(one.start for one in own), max(one.end for one in own)
        first = math.floor(BAR * start / schedule.makespan)
        last = max(math.ceil(BAR * end / schedule.makespan), first + 1)
        hours = _hours(per_run * sum(one.task.seconds for one in own))
        bar = " " * first + "#" * (last - first)
        rows.append((end, [name, bar.ljust(BAR), str(len(own)), hours, duration(end)]))
    header = ["table", f"0 to {duration(schedule.makespan)}", "runs", "GPU hours", "complete after"]
    lines = text_table(header, [row for _, row in sorted(rows, key=lambda pair: pair[0])], left=2)
    return [*lines, "Tables share runs of the same recipe, which count in each of them."]


def _storage(runs: list[PlannedRun], at_a_time: int) -> list[str]:
    known: dict[str, int] = {}
    sizes = [_parameters(run.config, known) for run in runs]
    checkpoints = sum(sizes) * CHECKPOINT_BYTES * KEPT_CHECKPOINTS
    weights = sum(sizes) * WEIGHTS_BYTES * KEPT_WEIGHTS
    predictions = PREDICTION_BYTES * sum(_tested(run) for run in runs)
    writing = sum(sorted(sizes, reverse=True)[:at_a_time]) * CHECKPOINT_BYTES
    total = checkpoints + weights + predictions
    return [
        f"storage: {_bytes(total)} at the end: checkpoints {_bytes(checkpoints)} (the last two of each run), weights "
        f"{_bytes(weights)}, predictions {_bytes(predictions)}",
        f"and up to {_bytes(writing)} more while runs write their next checkpoints",
    ]


def _parameters(config: RunConfig, known: dict[str, int]) -> int:
    """Return the number of parameters; runs that differ only in their training share one count."""
    facts = config.data.facts
    key = json.dumps([config.model.model_dump(mode="json"), facts.image_size, facts.channels, len(facts.classes)])
    if key not in known:
        with torch.device("meta"):
            known[key] = count_parameters(build_model(config))
    return known[key]


def _tested(run: PlannedRun) -> int:
    """Return the number of predictions of a run."""
    all_of_them = TEST_EXAMPLES.get(run.config.data.name, USUAL_TEST_EXAMPLES)
    return len(run.conditions) * (run.examples or all_of_them)


def _bytes(number: float) -> str:
    for power, unit in ((12, "TB"), (9, "GB"), (6, "MB")):
        if number >= 10**power:
            return f"{number / 10**power:.1f} {unit}"
    return f"{number / 1000:.0f} kB"


def _failures(schedule: Schedule, per_day: float, per_run: int, gpus: int) -> list[str]:
    if not per_day:
        return ["failures: none assumed"]
    nodes, all_nodes = (-(-number // GPUS_PER_NODE) for number in (schedule.slots * per_run, gpus))
    if per_day > MOST_FAILURES * all_nodes:
        raise InputError(
            f"--failures-per-day {per_day:g} is more than {MOST_FAILURES} per node of this cluster ("
            f"{_count(all_nodes, 'node')}): use at most {MOST_FAILURES * all_nodes}"
        )
    saved = [one.task.saved_every for one in schedule.placed]
    lines = [
        f"failures: {per_day:g} per day among {_count(all_nodes, 'node')} of up to {GPUS_PER_NODE} GPUs, "
        f"{duration(RESTART)} until the runs of a node continue; {TRIALS} simulations",
    ]
    rows = []
    options: dict[str, Any] = {"per_day": per_day * nodes / all_nodes, "trials": TRIALS, "gpus_per_run": per_run}
    for resume, text in ((True, "resume from checkpoints"), (False, "start again")):
        trials = simulate_failures(schedule, resume=resume, **options)
        rows.append([text, *_outcome(trials, per_run * schedule.work)])
    header = ["runs of a failed node", "schedule, mean", "9 of 10 within", "GPU hours lost", "of the work"]
    span = f"{duration(min(saved))} to {duration(max(saved))}"
    return [*lines, *text_table(header, rows), f"Checkpoints are {span} apart, as the recipes say."]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _outcome(trials: list[Trial], work: float) -> list[str]:
    if any(math.isinf(trial.makespan) for trial in trials):
        return ["never", "never", "-", "-"]
    makespans = sorted(trial.makespan for trial in trials)
    lost = max(statistics.fmean(trial.lost for trial in trials), 0.0)  # sums of floats may be slightly below 0
    return [
        duration(statistics.fmean(makespans)),
        duration(makespans[math.ceil(0.9 * len(makespans)) - 1]),
        f"{lost / 3600:,.1f}",
        f"{100 * lost / work:.1f} %",
    ]
