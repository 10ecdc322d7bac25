"""The runs of an experiment: their configurations, names and tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
import yaml

from liere.comparison.planned_run import PlannedRun
from liere.data.registry import find_section
from liere.encodings import TransformerShape, create_encoding
from liere.errors import InputError
from liere.files.shipped import experiments_folder
from liere.presets import ViTSize, resolve_size
from liere.reproduce.experiment import Experiment
from liere.runs.config import RunConfig
from liere.runs.config_file import parse_config, read_config
from liere.runs.encoding_text import file_name, parse_encoding

__all__ = ["Key", "Wanted", "plan_runs", "unique_runs"]

DATA_FOLDER = "data"
# A smoke test runs everything at the smallest possible size.
SMOKE = {
    "model.size": "null",
    "model.dim": "128",
    "model.depth": "2",
    "model.heads": "2",
    "model.mlp_dim": "32",
    "training.examples": "16",
    "training.batch_size": "8",
    "training.accumulate": "1",
    "training.validate_every": "1",
    "training.validation_examples": "8",
    "optimizer.warmup_steps": "0",
    "hardware.workers": "0",
}
SMOKE_TEST_EXAMPLES = 8


class Key(NamedTuple):
    """The role of a run in its table.

    Attributes:
        data: Data set.
        variant: Variation; `""` for none.
        encoding: Encoding, with options.
        fine_tuned: Whether it is fine-tuned from another run.
    """

    data: str
    variant: str
    encoding: str
    fine_tuned: bool = False


@dataclass(frozen=True)
class Wanted:
    """A run that a table needs."""

    key: Key
    seed: int
    planned: PlannedRun


def plan_runs(
    experiment: Experiment, overrides: dict[str, str], folder: Path, *, data: Path | None = None, smoke: bool = False
) -> list[Wanted]:
    """Return the checked runs of an experiment; a run that several tables need has the same folder in all of them.

    Args:
        experiment: The experiment.
        overrides: Fields to override, by dotted name, with values as text; `data` fields apply to the data sets that
            have them.
        folder: Folder of the runs.
        data: Folder of the data sets, instead of ./data.
        smoke: Whether it is a smoke test with tiny models.

    Raises:
        ValueError: If a setting is invalid.
    """
    wanted = []
    contents = {
        label: _with_root(read_config(experiments_folder() / column.recipe), data)
        for label, column in experiment.data.items()
    }
    _check_overrides(experiment, contents, overrides)
    for label, column in experiment.data.items():
        content = contents[label]
        own = {name: text for name, text in overrides.items() if _has_field(content, name)}
        for variant, fields in experiment.vary.items():
            for encoding in fields.get("encodings") or column.encodings or experiment.encodings:
                seeds = column.seeds or experiment.seeds
                for seed in seeds[:1] if smoke else seeds:
                    texts = _texts(fields, encoding, seed) | (SMOKE if smoke else {}) | own
                    config = parse_config(content, texts, source=column.recipe)
                    texts |= config.model.unsupported_fields()
                    config = parse_config(content, texts, source=column.recipe)
                    _check_encoding(config)
                    key = Key(label, variant, encoding)
                    base = _planned(experiment, label, encoding, config, folder, smoke)
                    wanted.append(Wanted(key, seed, base))
                    if experiment.fine_tune is not None:
                        tuned = _fine_tuned(content, texts, experiment.fine_tune, own, base, smoke)
                        wanted.append(
                            Wanted(
                                key._replace(fine_tuned=True),
                                seed,
                                _planned(experiment, label, encoding, tuned, folder, smoke, side=config.data.side),
                            )
                        )
    return wanted


def _with_root(content: dict[str, Any], data: Path | None) -> dict[str, Any]:
    """Return a recipe with its data set in another folder than ./data."""
    section = content.get("data", {})
    if data is None or section.get("name", "spatial") == "spatial":
        return content
    root = Path(section.get("root") or DATA_FOLDER)
    if not root.is_relative_to(DATA_FOLDER):
        return content
    return content | {"data": section | {"root": str(data / root.relative_to(DATA_FOLDER))}}


def _has_field(content: dict[str, Any], name: str) -> bool:
    section, _, field = name.partition(".")
    data_set = find_section(content.get("data", {}).get("name", "spatial"))
    return section != "data" or data_set is None or field in data_set.model_fields.keys() - {"name"}


def _check_overrides(experiment: Experiment, contents: dict[str, dict[str, Any]], overrides: dict[str, str]) -> None:
    """Raise if a field exists in no data set, is ambiguous, or is set by the experiment itself."""
    varied = {name for fields in experiment.vary.values() for name in fields} | set(experiment.fine_tune or ())
    for name in overrides:
        if name in varied:
            raise InputError(f"--{name} is varied by this experiment: omit it, or train single runs (--configs)")
        if name == "data.root" and len(contents) > 1:
            raise InputError(
                "--data.root needs a single data set, but this experiment has several: use --data or --only"
            )
        if not any(_has_field(content, name) for content in contents.values()):
            raise InputError(f"--{name} is not a field of any of these data sets ({', '.join(contents)}): omit it")


def _check_encoding(config: RunConfig) -> None:
    """Raise if the encoding or its options are invalid; does not need the data."""
    model = config.model
    size = resolve_size(model.size, model.model_dump(include=set(ViTSize._fields)))
    axes = 2 if isinstance(model.patch_size, int) else len(model.patch_size)
    shape = TransformerShape(grid=(2,) * axes, dim=size.dim, num_heads=size.heads, depth=1)
    with torch.random.fork_rng(devices=[]):
        create_encoding(model.encoding, shape, **model.options)


def _planned(
    experiment: Experiment,
    label: str,
    encoding: str,
    config: RunConfig,
    folder: Path,
    smoke: bool,
    side: int | None = None,
) -> PlannedRun:
    side = side or config.data.side
    conditions = tuple(dict.fromkeys(test.condition(side) for test in experiment.data[label].tests))
    name = f"{file_name(label.lower())}-{file_name(encoding)}-seed{config.training.seed}-{config.fingerprint[:8]}"
    examples = SMOKE_TEST_EXAMPLES if smoke else experiment.test_examples
    return PlannedRun(folder / name, config, conditions, examples)


def _texts(fields: dict[str, Any], encoding: str, seed: int) -> dict[str, str]:
    """Return the fields of a run as text, with the options of the encoding and of the variation merged."""
    name, options = parse_encoding(encoding)
    options = options | fields.get("model.options", {})
    texts = {
        field: yaml.safe_dump(value) for field, value in fields.items() if "." in field and field != "model.options"
    }
    texts |= {"model.encoding": name, "training.seed": str(seed)}
    return texts | ({"model.options": yaml.safe_dump(options)} if options else {})


def _fine_tuned(
    content: dict[str, Any],
    texts: dict[str, str],
    fields: dict[str, Any],
    overrides: dict[str, str],
    base: PlannedRun,
    smoke: bool,
) -> RunConfig:
    texts = (
        texts | {name: yaml.safe_dump(value) for name, value in fields.items()} | (SMOKE if smoke else {}) | overrides
    )
    texts |= {
        "model.image_size": yaml.safe_dump(list(base.config.data.facts.image_size)),
        "training.start_from": base.folder.name,
    }
    return parse_config(content, texts)


def unique_runs(wanted: list[Wanted]) -> Iterator[PlannedRun]:
    """Yield each run once, with all tests that the table needs; runs that others start from come first."""
    merged: dict[Path, PlannedRun] = {}
    for one in wanted:
        planned = one.planned
        known = merged.get(planned.folder, planned)
        conditions = tuple(dict.fromkeys([*known.conditions, *planned.conditions]))
        merged[planned.folder] = replace(known, conditions=conditions)
    yield from sorted(merged.values(), key=lambda planned: planned.config.training.start_from is not None)
