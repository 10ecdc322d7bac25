"""What finished runs say together: the table, the pairs and the curves, as JSON holds them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from liere.errors import InputError
from liere.evaluation.pairs import compare_pairs, pairs_note
from liere.evaluation.predictions import Predictions, common_examples, read_predictions
from liere.evaluation.seeds import seed_spread
from liere.evaluation.statistics import accuracy_interval, mean_interval
from liere.machine import versions
from liere.runs.conditions import Condition
from liere.runs.config import COORDINATE_FIELDS, ModelConfig, RunConfig
from liere.runs.run import Run, open_run

__all__ = ["FORMAT", "encoding_names", "examples_to_target", "find_runs", "plain_evaluations", "summarise"]

FORMAT = "liere-comparison-1"
TARGET = 0.95


def find_runs(folders: Sequence[Path]) -> list[Run]:
    """Return the runs in these folders: each is a run, or a comparison with runs in it.

    Raises:
        FileNotFoundError: If one is neither.
    """
    runs = []
    for folder in folders:
        if (folder / "config.yaml").exists():
            runs.append(open_run(folder))
            continue
        inside = sorted(file.parent for file in folder.glob("runs/*/config.yaml"))
        if not inside:
            raise FileNotFoundError(f"{folder} is neither a run nor a comparison: there is no config.yaml or runs/")
        runs += [open_run(found) for found in inside]
    return runs


def encoding_names(configs: Sequence[RunConfig]) -> list[str]:
    """Return what to call the encodings of runs: with their options where it takes these to tell two apart."""
    variants: dict[str, set[str]] = {}
    for config in configs:
        variants.setdefault(config.model.encoding, set()).add(_with_options(config))
    return [
        config.model.encoding if len(variants[config.model.encoding]) == 1 else _with_options(config)
        for config in configs
    ]


def _with_options(config: RunConfig) -> str:
    options = ",".join(f"{name}={value}" for name, value in sorted(config.model.options.items()))
    return config.model.encoding + (f":{options}" if options else "")


def summarise(runs: Sequence[Run], *, command: str, root: Path) -> dict[str, Any]:
    """Return what the runs found, by encoding; see `liere.report` for what is made of it.

    Args:
        runs: Finished, evaluated runs.
        command: What made them.
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
            raise InputError(f"{name} has two runs with the same seed ({sorted(seeds)}): leave one of them out")
    _check_data(runs)
    sizes = _common_sizes(runs)
    first, result = runs[0].config, runs[0].result()
    rows = [_row(name, group, sizes) for name, group in groups.items()]
    predictions = {
        size: {
            name: {run.config.training.seed: _predictions(run, size) for run in group} for name, group in groups.items()
        }
        for size in sizes
    }
    pairs = compare_pairs(predictions)
    return {
        "format": FORMAT,
        "title": first.title or f"Position encodings on the {first.data.name} task",
        "description": _description(groups),
        "command": command,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "sizes": sizes,
        "train_size": first.data.side,
        "target_accuracy": TARGET,
        "config": _recipe(_fullest(runs)),
        "versions": versions(("scipy",)) | result["versions"],
        "machine": result["machine"],
        "encodings": rows,
        "paper_note": "",  # filled in by who knows a paper on the same task
        "pairs": pairs,
        "pairs_note": pairs_note(predictions, pairs),
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
    """Make sure that all were tested on the same examples: how many they were trained on does not matter."""
    fields = {"train_examples", "max_unreadable"}
    fields |= {"root", "verify"} if all(run.config.data.is_well_known for run in runs) else set()
    first = runs[0].config.data.model_dump(exclude=fields)
    for run in runs:
        data = run.config.data.model_dump(exclude=fields)
        differing = [f"data.{name}" for name, value in data.items() if value != first[name]]
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
            plainly = " as it was trained, without other positions or shuffling" if run.evaluations("final") else ""
            raise InputError(f"run {run.folder} has not been evaluated{plainly}: liere eval {run.folder}")
        found.append(sizes)
    common = sorted(set.intersection(*found))
    if not common:
        raise InputError(f"no image size was evaluated in all runs: found {[sorted(sizes) for sizes in found]}")
    return common


def _row(name: str, group: list[Run], sizes: list[int]) -> dict[str, Any]:
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
        "evaluations": [_evaluation(group, size) for size in sizes],
        "paper": None,
        "paper_label": None,
    }


def plain_evaluations(run: Run) -> list[dict[str, Any]]:
    """Return what was found with the final weights where nothing but the size was other than in training."""
    return [record for record in run.evaluations("final") if Condition.of(record).is_plain]


def examples_to_target(run: Run) -> int | None:
    """Return how many examples a run had seen when its validation accuracy first was 95 %, if it ever was."""
    return next((int(point["examples"]) for point in run.curve() if point["accuracy"] >= TARGET), None)


def _evaluation(group: list[Run], size: int) -> dict[str, Any]:
    by_seed = [_predictions(run, size) for run in group]
    accuracies = [float(predictions.correct.mean()) for predictions in by_seed]
    by_seed = common_examples(by_seed)
    correct = np.mean([predictions.correct for predictions in by_seed], axis=0)
    losses = np.mean([predictions.losses for predictions in by_seed], axis=0)
    return {
        "size": size,
        "examples": len(correct),
        "accuracy": accuracy_interval(correct).as_dict(),
        "loss": mean_interval(losses).as_dict(),
        "by_seed": accuracies,
        "over_seeds": seed_spread(accuracies).as_dict(),
    }


def _predictions(run: Run, size: int) -> Predictions:
    (record,) = (record for record in plain_evaluations(run) if record["size"] == size)
    return read_predictions(run, record)


def _fullest(runs: Sequence[Run]) -> Run:
    """Return the first run with all of the recipe: encodings without coordinates are trained without some fields."""
    defaults = ModelConfig.model_fields

    def changed(run: Run) -> int:
        return sum(getattr(run.config.model, name) != defaults[name].default for name in COORDINATE_FIELDS)

    return max(runs, key=changed)


def _recipe(run: Run) -> dict[str, Any]:
    """Return the configuration without what a comparison varies."""
    recipe = run.config.model_dump(mode="json", exclude={"title": True, "hardware": {"threads"}})
    for section, names in {"model": ("encoding", "options"), "training": ("seed",)}.items():
        for name in names:
            del recipe[section][name]
    return recipe


def _description(groups: dict[str, list[Run]]) -> str:
    """Say what was run, and where recipes differ."""
    runs = [run for group in groups.values() for run in group]
    config, recipes = runs[0].config, [_recipe(run) for run in runs]
    note = _without_coordinates(runs, recipes)
    if all(recipe["model"]["attention_scale"] == "log" for recipe in recipes):
        note += " Attention scores are multiplied by log(tokens) / log(tokens in training)."
    differing = sorted(
        f"{section}.{name}"
        for section, part in recipes[0].items()
        for name in part
        if any(recipe[section][name] != part[name] for recipe in recipes)
    )
    least, most = (pick(map(len, groups.values())) for pick in (min, max))
    seeds = "one seed" if most == 1 else f"{most} seeds" if least == most else f"{least} to {most} seeds"
    parameters = runs[0].result()["parameters"]
    text = (
        f"Small transformers of about {parameters / 1e6:.2g} M parameters, trained on "
        f"{config.training.steps * config.training.batch_size:,} examples of {config.data.side} px "
        f"with {seeds} per encoding."
        if parameters < 5e6
        else f"Transformers of about {parameters / 1e6:.0f} M parameters, trained on images of {config.data.side} px."
    )
    return text + note + (f" Recipes are not the same: they differ in {', '.join(differing)}." if differing else "")


def _without_coordinates(runs: Sequence[Run], recipes: list[dict[str, Any]]) -> str:
    """Return a sentence about fields that some encodings do not support, and leave that difference out of recipes."""
    changed = {
        name: value
        for recipe in recipes
        for name, value in recipe["model"].items()
        if name in COORDINATE_FIELDS and value != ModelConfig.model_fields[name].default
    }
    if not changed:
        return ""
    without = dict[str, None]()
    for run, recipe in zip(runs, recipes, strict=True):
        wanted = run.config.model.model_copy(update=changed)
        if unsupported := [name.removeprefix("model.") for name in wanted.unsupported_fields()]:
            recipe["model"] |= {name: changed[name] for name in unsupported}
            without[run.config.model.encoding] = None
    fields = ", ".join(f"{name} {value}" for name, value in changed.items())
    verb = "does" if len(without) == 1 else "do"
    but = (
        f"; {' and '.join(without)} {verb} not support that and {'is' if len(without) == 1 else 'are'} trained without"
    )
    return f" The recipe has {fields}{but if without else ''}."


def _relative(folder: Path, root: Path) -> str:
    try:
        return str(folder.resolve().relative_to(root.resolve()))
    except ValueError:
        return folder.name
