"""Estimate the cost of the paper's tables and figures before making them."""

from __future__ import annotations

import warnings
from pathlib import Path

from liere.reproduce import reproduction as reproductions
from liere.reproduce.catalog import CATALOGUE, Entry
from liere.reproduce.reproduction import Reproduction, prepare
from liere.reproduce.request import SCALES
from liere.runs.cost import duration, estimate_seconds, scaled

__all__ = ["NOT_COUNTED", "describe_missing", "list_costs"]

A_WEEK = 1e17  # operations that a few cores do in a week
GPU_SPEED = 1e14  # operations per second, for costs in GPU days
NOT_COUNTED = "starting processes, loading data and testing are not included"


def list_costs(data: Path | None = None) -> list[list[str]]:
    """Return one row per table or figure: its name, its place in the paper, and its cost at each scale.

    Args:
        data: Folder of the data sets, instead of ./data; it need not exist.
    """
    with warnings.catch_warnings():
        # The paper's block of 48 leaves a part of each head unrotated, on purpose.
        warnings.filterwarnings("ignore", message="head_dim=.* is not a multiple of block_size")
        return [
            [entry.name, entry.paper, *(_cost(entry, scale, data) for scale in SCALES)] for entry in CATALOGUE.values()
        ]


def _cost(entry: Entry, scale: str, data: Path | None) -> str:
    """Return the cost of a table: a few seconds if its runs come with the project, otherwise their training."""
    if not entry.experiment:
        return "no runs"
    kept = reproductions.committed_runs(scale)
    reproduction = prepare(entry, scale, {}, places=[Path(), *([kept] if kept else [])], data=data)
    missing, runs = reproduction.missing(), reproduction.runs()
    if not missing:
        results = [run.result() for run in reproduction.results().unique_runs()]
        core_seconds = sum(result["seconds"] * result["machine"].get("threads", 1) for result in results)
        return f"{_runs(len(runs))}, kept (training took {duration(core_seconds)} on one core)"
    count = (
        f"{_runs(len(runs))} to train" if len(missing) == len(runs) else f"{_runs(len(runs))}, {len(missing)} to train"
    )
    try:
        operations = sum(run.operations for run in missing)
    except (OSError, ValueError):  # array files that are missing or invalid
        files = {str(run.config.data.path) for run in missing if run.config.data.facts_need_files}
        return f"{count}; cost unknown without {', '.join(sorted(files))}"
    seconds = estimate_seconds(operations) if scale == "small" else operations / GPU_SPEED
    return f"{count}: {scaled(operations)}, {duration(seconds)}"


def describe_missing(reproduction: Reproduction) -> list[str]:
    """Return lines on the runs of a table: how many are finished, and the cost of the others."""
    name, missing, total = reproduction.entry.name, reproduction.missing(), len(reproduction.runs())
    lines = [f"{name}: {total - len(missing)} of {total} runs are finished"]
    untrained = [run for run in missing if not run.is_trained()]
    if len(untrained) < len(missing):
        lines.append(f"{name}: {_runs(len(missing) - len(untrained))} trained but not tested yet")
    if untrained and all(not run.config.data.facts_need_files or run.config.data.path.exists() for run in untrained):
        operations = sum(run.operations for run in untrained)
        hint = f"at least about {duration(estimate_seconds(operations))} on the cores of this machine"
        if operations > A_WEEK:
            hint = f"at least about {duration(operations / GPU_SPEED)} on a GPU with 100 T operations per second"
        work = f"{scaled(operations)} operations, {hint} ({NOT_COUNTED})"
        lines.append(f"{name}: {_runs(len(untrained))} to train, {work}")
    return lines


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"
