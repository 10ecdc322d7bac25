"""Training a run for longer than planned: results of the shorter run are set aside, and its checkpoint is resumed."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

from liere.errors import InputError
from liere.files.reading import DamagedError, check_regular
from liere.files.writing import write_atomically
from liere.runs.checkpoints import PREVIOUS, load_newest, remove_checkpoint, save_checkpoint
from liere.runs.records import merge_evaluations, read_evaluations
from liere.runs.run import FACTS, Run, open_run

__all__ = ["is_longer", "make_longer"]

RESULT, EVALUATIONS, PREDICTIONS, WEIGHTS = "result.json", "evaluation.json", "predictions", "final.safetensors"
"""Results of the shorter run, moved in this order, so that an interrupted move leaves an unfinished run."""
UP = ("..", "..")
"""Path from the folder of the shorter run to that of the run."""
COPIES = ("config.yaml", "facts.json", "metrics.csv", "best.safetensors")


def is_longer(run: Run) -> bool:
    """Return whether a run is configured for more examples than its folder."""
    return run.config.training.examples > open_run(run.folder).config.training.examples


def make_longer(run: Run) -> Path | None:
    """Prepare a folder for training on more examples, and return the folder that keeps the shorter run.

    An unfinished run has no results to keep: None is returned.

    If the process is killed at any moment, the folder contains the shorter or the longer run, which can be resumed.

    Raises:
        ValueError: If there is no checkpoint to resume, or anything but the number of examples differs.
        OSError: If something cannot be written.
    """
    shorter = open_run(run.folder)
    old, new = shorter.config, run.config
    _check(shorter, run)
    checkpoint, _ = load_newest(run.checkpoints, old.fingerprint, old.training.steps)
    if checkpoint is None:
        raise InputError(
            f"{run.folder} cannot be trained longer: it has no complete checkpoint with optimizer state in "
            f"{run.checkpoints}; start a new run from its weights with --training.start_from {run.folder}"
        )
    if checkpoint.journal["reached_target"] and old.training.stop_at_accuracy is not None:
        raise InputError(
            f"{run.folder} stopped because it reached training.stop_at_accuracy {old.training.stop_at_accuracy}, not "
            "because it ran out of examples: start a new run without it"
        )
    kept = run.folder / "shorter" / f"{old.training.examples}-examples"
    is_set_aside = shorter.result_file.exists() or kept.exists()  # `kept` exists if an earlier attempt was killed
    if is_set_aside:
        _set_aside(shorter, kept)
    # Until the configuration is replaced, the old checkpoint, kept as the previous one, is the valid one.
    save_checkpoint(dataclasses.replace(checkpoint, fingerprint=new.fingerprint), run.checkpoints)
    write_atomically(run.folder / "config.yaml", new.to_yaml())
    remove_checkpoint(run.checkpoints / PREVIOUS)
    return kept if is_set_aside else None


def _set_aside(shorter: Run, kept: Path) -> None:
    """Move the results of the shorter run to a subfolder that is a complete run."""
    for folder in (kept.parent, kept):
        if folder.is_symlink():
            raise InputError(f"{folder} is a link, but a run may only write to its own folder: delete it")
    kept.mkdir(parents=True, exist_ok=True)
    for name in COPIES:
        if (shorter.folder / name).exists():
            check_regular(shorter.folder / name)  # copying a device might never end
            (kept / name).unlink(missing_ok=True)
            shutil.copyfile(shorter.folder / name, kept / name)
    stored = shorter.stored_data
    if stored is not None and stored.root_from_run is not None:
        way = os.path.normpath(os.path.join(*UP, stored.root_from_run))
        dataclasses.replace(stored, root_from_run=way).write(kept / FACTS)
    _move(shorter.folder / RESULT, kept / RESULT)
    _move_evaluations(shorter.folder / EVALUATIONS, kept / EVALUATIONS)
    _move_files(shorter.folder / PREDICTIONS, kept / PREDICTIONS)
    _move(shorter.folder / WEIGHTS, kept / WEIGHTS)


def _check(shorter: Run, run: Run) -> None:
    training = shorter.config.training.model_copy(update={"examples": run.config.training.examples})
    if shorter.config.model_copy(update={"training": training}).fingerprint != run.config.fingerprint:
        raise InputError(
            f"{run.folder} was created with another configuration, and only training.examples can be increased: "
            "choose another --out"
        )


def _move_evaluations(path: Path, kept: Path) -> None:
    """Move evaluations to those that an attempt that was killed has set aside: the run may have been restored since."""
    try:
        new = read_evaluations(path)
    except FileNotFoundError:
        return
    except DamagedError:
        _move(path, kept.with_name(f"damaged-{kept.name}") if kept.exists() else kept)
        return
    with suppress(FileNotFoundError, DamagedError):  # what is missing or damaged cannot be merged
        merged = merge_evaluations(read_evaluations(kept), new)
        write_atomically(path, json.dumps(merged, indent=1) + "\n")
    _move(path, kept)


def _move_files(path: Path, kept: Path) -> None:
    """Move a folder; files of the same names replace those that an attempt that was killed has set aside."""
    if any(folder.is_symlink() or not folder.is_dir() for folder in (path, kept)):
        _move(path, kept)
        return
    for file in list(path.iterdir()):
        _move(file, kept / file.name)
    path.rmdir()


def _move(path: Path, kept: Path) -> None:
    """Move a file or folder, replacing one left by an attempt that was killed."""
    if not path.exists():
        return
    if kept.is_dir() and not kept.is_symlink():
        shutil.rmtree(kept)
    path.replace(kept)
