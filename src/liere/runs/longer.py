"""Training a run longer than it was planned: what the shorter one gave is set aside, and its checkpoint goes on."""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path

from liere.errors import InputError
from liere.files.writing import write_atomically
from liere.runs.checkpoints import PREVIOUS, load_newest, save_checkpoint
from liere.runs.run import FACTS, Run, open_run

__all__ = ["is_longer", "make_longer"]

RESULTS = ("result.json", "evaluation.json", "predictions", "final.safetensors")
"""What is true of the shorter run only; moved in this order, so that a run without all of them is not finished."""
UP = ("..", "..")
"""From the folder of the shorter run to that of the run."""
COPIES = ("config.yaml", "facts.json", "metrics.csv", "best.safetensors")


def is_longer(run: Run) -> bool:
    """Return whether a run is asked to train on more examples than its folder says."""
    return run.config.training.examples > open_run(run.folder).config.training.examples


def make_longer(run: Run) -> Path | None:
    """Make a folder ready for a run that goes on to more examples, and return where the shorter run is kept.

    A run that is not finished has no results yet: nothing of it is kept apart, and None is returned.

    Killed at any moment, the folder holds the shorter run or the longer one, each of which can be resumed.

    Raises:
        ValueError: If there is no checkpoint to go on from, or something else than the number of examples differs.
        OSError: If something cannot be written.
    """
    shorter = open_run(run.folder)
    old, new = shorter.config, run.config
    _check(shorter, run)
    checkpoint, _ = load_newest(run.checkpoints, old.fingerprint, old.training.steps)
    if checkpoint is None:
        raise InputError(
            f"{run.folder} cannot be trained longer: it has no whole checkpoint with the state of the optimizer in "
            f"{run.checkpoints}; begin a run with training.start_from {run.folder} to go on from its weights alone"
        )
    if checkpoint.journal["reached_target"] and old.training.stop_at_accuracy is not None:
        raise InputError(
            f"{run.folder} stopped because it reached training.stop_at_accuracy {old.training.stop_at_accuracy}, not "
            "for want of examples: begin a run without it"
        )
    kept = run.folder / "shorter" / f"{old.training.examples}-examples"
    is_set_aside = shorter.result_file.exists() or kept.exists()  # by an attempt that was killed
    if is_set_aside:
        _set_aside(shorter, kept)
    # Until the configuration is the new one, the old checkpoint, kept as the previous one, is the one that counts.
    save_checkpoint(dataclasses.replace(checkpoint, fingerprint=new.fingerprint), run.checkpoints)
    write_atomically(run.folder / "config.yaml", new.to_yaml())
    (run.checkpoints / PREVIOUS).unlink(missing_ok=True)
    return kept if is_set_aside else None


def _set_aside(shorter: Run, kept: Path) -> None:
    """Move what is true of the shorter run only to a folder in its own, as a run that stands alone."""
    kept.mkdir(parents=True, exist_ok=True)
    for name in COPIES:
        if (shorter.folder / name).exists():
            shutil.copyfile(shorter.folder / name, kept / name)
    stored = shorter.stored_data
    if stored is not None and stored.root_from_run is not None:
        way = os.path.normpath(os.path.join(*UP, stored.root_from_run))
        dataclasses.replace(stored, root_from_run=way).write(kept / FACTS)
    for name in RESULTS:
        _move(shorter.folder / name, kept / name)


def _check(shorter: Run, run: Run) -> None:
    training = shorter.config.training.model_copy(update={"examples": run.config.training.examples})
    if shorter.config.model_copy(update={"training": training}).fingerprint != run.config.fingerprint:
        raise InputError(
            f"{run.folder} was made by another recipe: only training.examples can be raised; choose another --out"
        )


def _move(path: Path, kept: Path) -> None:
    """Move a file or folder, in place of one that an attempt that was killed has left."""
    if not path.exists():
        return
    if kept.is_dir() and not kept.is_symlink():
        shutil.rmtree(kept)
    path.replace(kept)
