"""The attacked run: small, with every feature enabled that could break resuming."""

from __future__ import annotations

import csv
from pathlib import Path

from tools.attacks.arena import Arena

__all__ = [
    "CONFIG",
    "STEPS",
    "checkpoint_losses",
    "compare",
    "finished_run",
    "left_losses",
    "resume_losses",
    "write_config",
]

CONFIG = """\
data: {size: 36, train_examples: 200, distractor_arrows: 2, distractor_letters: 1}
model: {encoding: liere8, dim: 16, depth: 2, heads: 2, mlp_dim: 32, dropout: 0.1, attn_dropout: 0.1, drop_path: 0.1,
        position_shift: 1.75, position_stretch: 1.2, position_zoom: 1.2, position_noise: 0.3}
optimizer: {learning_rate: 2.0e-3, generator_learning_rate: 1.0e-3, warmup_steps: 5, clip: 1.0, weight_decay: 0.01}
training:
  {examples: 384, batch_size: 16, accumulate: 2, validate_every: 8, validation_examples: 40, checkpoint_every: 3,
   log_every: 5, seed: 1}
hardware: {accelerator: cpu, threads: 1}
"""
STEPS = 24
SAME_BYTES = ("config.yaml", "final.safetensors", "best.safetensors")


def write_config(folder: Path, text: str = CONFIG) -> Path:
    """Write a configuration to a folder, and return the file."""
    file = folder / "config.yaml"
    file.write_text(text)
    return file


def finished_run(arena: Arena, folder: Path, *fields: str, text: str = CONFIG) -> Path:
    """Train an undisturbed run, the reference for all others, and return its folder."""
    run = folder / "uninterrupted"
    outcome = arena.run("train", "--config", write_config(folder, text), "--out", run, *fields)
    if losses := outcome.losses(0):
        raise RuntimeError(f"the undisturbed run failed: {'; '.join(losses)}")
    return run


def resume_losses(arena: Arena, run: Path, *fields: str) -> list[str]:
    """Resume an attacked run to the end, and return how it differs from the undisturbed run."""
    folder = run.parent
    exists = run.exists()
    start = ["train", "--config", folder / "config.yaml", "--out", run]
    outcome = arena.run(*(["train", "--resume", run] if exists else start), *(() if exists else fields))
    return outcome.losses(0) or [*compare(folder / "uninterrupted", run), *left_losses(run)]


def compare(one: Path, other: Path) -> list[str]:
    """Return what differs between two finished runs, except for times."""
    import torch

    different = [name for name in SAME_BYTES if (one / name).read_bytes() != (other / name).read_bytes()]
    rows = [
        [{**row, "seconds": ""} for row in csv.DictReader((run / "metrics.csv").read_text().splitlines())]
        for run in (one, other)
    ]
    different += ["metrics.csv"] if rows[0] != rows[1] else []
    if not (other / "checkpoints" / "last.ckpt").exists():
        return [*(f"{name} differs from the uninterrupted run" for name in different), "there is no last.ckpt"]
    states = [
        torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)["optimizer"]["state"] for run in (one, other)
    ]
    same = states[0].keys() == states[1].keys() and all(
        torch.equal(state[key], states[1][index][key]) for index, state in states[0].items() for key in state
    )
    different += [] if same else ["the optimizer's averages"]
    return [f"{name} differs from the uninterrupted run" for name in different]


def checkpoint_losses(run: Path, steps: int = 0) -> list[str]:
    """Return what is wrong with the newest checkpoint of a run, which must have at least `steps` steps."""
    from liere.runs.checkpoints import load_newest
    from liere.runs.run import open_run

    config = open_run(run).config
    checkpoint, refused = load_newest(run / "checkpoints", config.fingerprint, config.training.steps)
    if checkpoint is None:
        return [*refused, "nothing was saved"]
    lost = steps - checkpoint.step
    return refused + ([f"{lost} of {steps} steps were not saved"] if lost > 0 else [])


def left_losses(run: Path) -> list[str]:
    """Return the temporary files that killed processes left behind, in a run's folder and next to it."""
    left = [*run.rglob(".*.tmp"), *run.parent.glob(f".{run.name}.*")]
    return [f"{path.name} was left behind" for path in left]
