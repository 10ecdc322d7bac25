"""Tiny runs that train in a moment, with everything enabled that could break resuming."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("tests.training.requirements")
import yaml

from liere.runs.config_file import parse_config
from liere.runs.run import Run, create_run, open_run
from liere.training.fit import train
from liere.training.stop_requests import StoppedError, StopRequest

__all__ = ["CONFIG", "STEPS", "differences", "make_run", "quiet", "resume", "stop_after", "write_config"]

# Lightning's warnings about deliberate choices: `liere.optional.lightning_import` hides them from users, but pytest
# resets its filters for each test.
quiet = pytest.mark.filterwarnings(
    "ignore:.*does not have many workers",
    "ignore:.*treespec, LeafSpec",
    "ignore:.*smaller than the logging interval",
)

CONFIG = """\
data: {size: 36, train_examples: 50, distractor_arrows: 2, distractor_letters: 1}
model: {encoding: liere8, dim: 16, depth: 2, heads: 2, mlp_dim: 32, dropout: 0.1, attn_dropout: 0.1, drop_path: 0.1}
optimizer: {learning_rate: 2.0e-3, generator_learning_rate: 1.0e-3, warmup_steps: 3, clip: 1.0, weight_decay: 0.01}
training:
  {examples: 72, batch_size: 8, accumulate: 2, validate_every: 4, validation_examples: 10, checkpoint_every: 3,
   log_every: 2, seed: 1}
hardware: {accelerator: cpu, threads: 1}
"""
STEPS = 9
"""Steps of the whole run: validations after 4, 8 and 9, checkpoints also after 3 and 6, log entries after even ones."""


def write_config(folder: Path, text: str = CONFIG) -> Path:
    """Write a configuration to a file."""
    file = folder / "tiny.yaml"
    file.write_text(text)
    return file


def make_run(folder: Path, **fields: Any) -> Run:
    """Create a run; arguments such as `training__seed=3` override `CONFIG`."""
    overrides = {name.replace("__", "."): yaml.safe_dump(value) for name, value in fields.items()}
    return create_run(folder, parse_config(yaml.safe_load(CONFIG), overrides))


def stop_after(run: Run, steps: int) -> None:
    """Train this many steps, which must be fewer than all."""
    with pytest.raises(StoppedError, match="as requested"):
        train(run, say=print, request=StopRequest(further_steps=steps))
    assert not run.is_finished


def resume(run: Run, **options: Any) -> dict[str, Any]:
    """Resume from the folder alone, as another process would."""
    return train(open_run(run.folder), say=options.pop("say", print), **options)


def differences(one: Run, other: Run) -> list[str]:
    """Return the differences between two finished runs, apart from times."""
    files = ("final.safetensors", "best.safetensors")
    found = [name for name in files if (one.folder / name).read_bytes() != (other.folder / name).read_bytes()]
    logs = [
        [
            {name: value for name, value in row.items() if name != "seconds"}
            for row in csv.DictReader(run.metrics.read_text().splitlines())
        ]
        for run in (one, other)
    ]
    found += ["metrics.csv"] if logs[0] != logs[1] else []
    results = [{key: run.result()[key] for key in ("step", "examples", "best", "parameters")} for run in (one, other)]
    found += ["result.json"] if results[0] != results[1] else []
    states = [
        torch.load(run.checkpoints / "last.ckpt", weights_only=True)["optimizer"]["state"] for run in (one, other)
    ]
    same = states[0].keys() == states[1].keys() and all(
        torch.equal(state[key], states[1][index][key]) for index, state in states[0].items() for key in state
    )
    return found + ([] if same else ["the optimiser's averages"])
