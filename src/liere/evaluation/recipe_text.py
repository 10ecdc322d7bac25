"""The common recipe of the runs of a comparison, and a sentence about differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from liere.runs.model_config import COORDINATE_FIELDS, ModelConfig
from liere.runs.run import Run

__all__ = ["common_recipe", "describe_recipes"]


def common_recipe(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the configuration of a comparison, without the fields that it varies.

    It is taken from the run with the most fields set, since encodings without coordinates do not support some fields.
    """
    defaults = ModelConfig.model_fields

    def changed(run: Run) -> int:
        return sum(getattr(run.config.model, name) != defaults[name].default for name in COORDINATE_FIELDS)

    return _recipe(max(runs, key=changed))


def describe_recipes(groups: dict[str, list[Run]]) -> str:
    """Return a sentence about what was trained, and where recipes differ.

    Args:
        groups: Runs by encoding.
    """
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


def _recipe(run: Run) -> dict[str, Any]:
    """Return the configuration without the fields that a comparison varies."""
    recipe = run.config.model_dump(mode="json", exclude={"title": True, "hardware": {"threads"}})
    for section, names in {"model": ("encoding", "options"), "training": ("seed",)}.items():
        for name in names:
            del recipe[section][name]
    return recipe


def _without_coordinates(runs: Sequence[Run], recipes: list[dict[str, Any]]) -> str:
    """Return a sentence about fields that some encodings do not support, and remove them from recipes."""
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
