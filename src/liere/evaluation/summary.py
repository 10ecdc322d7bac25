"""Summaries of finished runs: the table, the pairs and the curves, as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from liere.data.section import SubsetSection
from liere.errors import InputError
from liere.evaluation.intervals import accuracy_interval, mean_interval
from liere.evaluation.pairs import compare_pairs, pairs_note, share_examples
from liere.evaluation.predictions import Predictions, read_predictions
from liere.evaluation.recipe_text import common_recipe, describe_recipes
from liere.evaluation.seeds import seed_spread
from liere.machine import versions
from liere.runs.conditions import Condition
from liere.runs.encoding_names import encoding_names
from liere.runs.run import Run

__all__ = ["FORMAT", "examples_to_target", "plain_evaluations", "summarize"]

FORMAT = "liere-comparison-1"
TARGET = 0.95


def summarize(runs: Sequence[Run], *, command: str, root: Path) -> dict[str, Any]:
    """Return the results of runs by encoding, as used by `liere.report`.

    Args:
        runs: Finished, evaluated runs.
        command: Command that created them.
        root: Folder that their paths are relative to.

    Raises:
        ValueError: If one is not finished or not evaluated, or they cannot be compared.
    """
    groups: dict[str, list[Run]] = {}
    for name, run in zip(encoding_names([run.config for run in runs]), runs, strict=True):
        groups.setdefault(name, []).append(run)
    for name, group in groups.items():
        seeds = [run.config.training.seed for run in group]
        if len(set(seeds)) < len(seeds):
            raise InputError(f"{name} has two runs with the same seed ({sorted(seeds)}): remove one of them")
    _check_data(runs)
    sizes = _common_sizes(runs)
    first, result = runs[0].config, runs[0].result()
    everything = {size: _predictions(groups, size) for size in sizes}
    predictions, left_out = share_examples(everything)
    rows = [
        _row(name, group, [_evaluation(size, [*predictions[size][name].values()], left_out) for size in sizes])
        for name, group in groups.items()
    ]
    return {
        "format": FORMAT,
        "title": first.title or f"Position encodings on the {first.data.name} task",
        "description": describe_recipes(groups),
        "command": command,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "sizes": sizes,
        "train_size": first.data.side,
        "target_accuracy": TARGET,
        "config": common_recipe(runs),
        "versions": versions(("scipy",)) | result["versions"],
        "machine": result["machine"],
        "encodings": rows,
        "paper_note": "",  # filled in by callers that know a paper on the same task
        "pairs": compare_pairs(predictions, left_out),
        "pairs_note": pairs_note(predictions),
        "runs": [
            {
                "encoding": name,
                "seed": run.config.training.seed,
                "run": _relative(run.folder, root),
                "seconds": run.result()["seconds"],
                "curve": run.curve(),
            }
            for name, group in groups.items()
            for run in group
        ],
    }


def _check_data(runs: Sequence[Run]) -> None:
    """Raise `ValueError` unless all runs have the same data; the number of training examples may differ."""
    fields = {"train_examples", "max_unreadable"}
    fields |= {"root", "verify"} if all(run.config.data.is_well_known for run in runs) else set()
    first = runs[0].config.data.model_dump(exclude=fields)
    for run in runs:
        data = run.config.data.model_dump(exclude=fields)
        names = dict.fromkeys([*first, *data])  # data sets differ in their fields
        differing = [f"data.{name}" for name in names if data.get(name) != first.get(name)]
        if differing:
            raise InputError(
                f"runs {runs[0].folder} and {run.folder} cannot be compared: they differ in {', '.join(differing)}"
            )


def _common_sizes(runs: Sequence[Run]) -> list[int]:
    found = []
    for run in runs:
        run.result()
        sizes = {record["size"] for record in plain_evaluations(run)}
        if not sizes:
            plainly = " as trained, without other positions or shuffling" if run.evaluations("final") else ""
            raise InputError(f"run {run.folder} has not been evaluated{plainly}: run liere eval {run.folder}")
        found.append(sizes)
    common = sorted(set.intersection(*found))
    if not common:
        raise InputError(
            f"no image size was evaluated in all runs, only {[sorted(sizes) for sizes in found]}: evaluate a common one"
        )
    return common


def _row(name: str, group: list[Run], evaluations: list[dict[str, Any]]) -> dict[str, Any]:
    results = [run.result() for run in group]
    reached = [examples for run in group if (examples := examples_to_target(run)) is not None]
    config = group[0].config
    return {
        "encoding": name,
        "options": config.model.options,
        "seeds": [run.config.training.seed for run in group],
        "parameters": results[0]["parameters"],
        "encoding_parameters": results[0]["encoding_parameters"],
        "seconds": round(statistics.fmean(result["seconds"] for result in results), 1),
        "examples": results[0]["examples"],
        "examples_to_target": statistics.median(reached) if reached else None,
        "seeds_at_target": len(reached),
        "evaluations": evaluations,
        "paper": None,
        "paper_label": None,
    }


def plain_evaluations(run: Run) -> list[dict[str, Any]]:
    """Return the evaluations of the final weights in which nothing but the size differs from training."""
    return [record for record in run.evaluations("final") if Condition.of(record).is_plain]


def examples_to_target(run: Run) -> int | None:
    """Return the number of training examples when the validation accuracy first reached 95 %; None if never."""
    return next((int(point["examples"]) for point in run.curve() if point["accuracy"] >= TARGET), None)


def _evaluation(size: int, by_seed: list[Predictions], left_out: Mapping[int, int]) -> dict[str, Any]:
    accuracies = [float(predictions.correct.mean()) for predictions in by_seed]
    correct = np.mean([predictions.correct for predictions in by_seed], axis=0)
    losses = np.mean([predictions.losses for predictions in by_seed], axis=0)
    return {
        "size": size,
        "examples": len(correct),
        "accuracy": accuracy_interval(correct).as_dict(),
        "loss": mean_interval(losses).as_dict(),
        "by_seed": accuracies,
        "over_seeds": seed_spread(accuracies).as_dict(),
        **({"left_out": left_out[size]} if size in left_out else {}),
    }


def _predictions(groups: Mapping[str, list[Run]], size: int) -> dict[str, dict[int, Predictions]]:
    """Return the predictions of all runs at a size by encoding and seed.

    Raises:
        ValueError: If the ids of test examples denote different examples in different runs. Except in generated data,
            they are positions in the subset that was requested, so they depend on its length. A file that was added or
            removed between two evaluations changes them as well.
    """
    found: dict[str, dict[int, Predictions]] = {}
    counts: dict[int, Path] = {}
    for name, run in ((name, run) for name, group in groups.items() for run in group):
        (record,) = (record for record in plain_evaluations(run) if record["size"] == size)
        part = found.setdefault(name, {})[run.config.training.seed] = read_predictions(run, record)
        count = record["examples"] + record.get("skipped", 0)
        # Otherwise, the record is of a version that did not count unreadable examples.
        is_counted = not part.ids or part.ids[-1] < count
        if isinstance(run.config.data, SubsetSection) and is_counted:
            counts.setdefault(count, run.folder)
    if len(counts) > 1:
        (one, first), (other, second), *_ = counts.items()
        raise InputError(
            f"{first} was tested on {one:,} examples of {size} px and {second} on {other:,}, so they cannot be paired: "
            "evaluate them again on the same data, with the same --examples"
        )
    return found


def _relative(folder: Path, root: Path) -> str:
    try:
        return str(folder.resolve().relative_to(root.resolve()))
    except ValueError:
        return folder.name
