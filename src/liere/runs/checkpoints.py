"""Checkpoints: written atomically, read without executing code, and validated before use."""

from __future__ import annotations

import io
import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from liere.errors import InputError
from liere.files.reading import naming
from liere.files.torch_archives import UnusualFileError
from liere.files.torch_files import check_torch_file
from liere.files.writing import is_system_error, write_atomically
from liere.runs.checkpoint_content import Checkpoint, CheckpointError, ForeignCheckpointError, check_content
from liere.runs.sharded_checkpoints import INDEX, read_shards, write_shards

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "ForeignCheckpointError",
    "finish_saving",
    "load_checkpoint",
    "load_newest",
    "remove_checkpoint",
    "save_checkpoint",
    "save_sharded_checkpoint",
]

FORMAT = "liere-checkpoint-1"
LAST, PREVIOUS = "last.ckpt", "previous.ckpt"


def save_checkpoint(checkpoint: Checkpoint, folder: Path, confirm: Callable[[], None] | None = None) -> None:
    """Write `last.ckpt`; an existing one is kept as `previous.ckpt`.

    Args:
        checkpoint: The checkpoint.
        folder: Folder of the checkpoints.
        confirm: Called right before files are replaced; if it raises, existing checkpoints are unchanged.

    Raises:
        OSError: If it cannot be written; existing checkpoints are then unchanged.
        ValueError: If the first checkpoint of a run contains anything that `load_checkpoint` would reject.
    """
    if confirm is not None:
        confirm()
    finish_saving(folder)
    new, is_first = folder / f"new-{LAST}", not (folder / LAST).exists()
    buffer = io.BytesIO()
    torch.save({"format": FORMAT} | vars(checkpoint), buffer)
    write_atomically(new, buffer.getbuffer(), confirm)
    if is_first:
        _check_first(new, checkpoint.state_dict)
    finish_saving(folder)


def _check_first(path: Path, state_dict: Mapping[str, object]) -> None:
    """Remove a checkpoint and raise `InputError` if it could not be loaded: now, not when the run is resumed."""
    try:
        check_torch_file(path)
    except UnusualFileError as error:
        path.unlink()
        raise InputError(
            f"a checkpoint of this model {error.what}, so that training could not be resumed from it: keep only plain "
            "tensors in the parameters and buffers of the model"
        ) from None
    for name, tensor in state_dict.items():
        if not isinstance(tensor, Tensor):
            wrong = f"is a {type(tensor).__name__}, but only tensors are saved: return a tensor from get_extra_state"
        elif 0 in tensor.stride() and tensor.untyped_storage().nbytes() < tensor.nbytes:
            wrong = "is an expanded tensor, into which torch loads no weights: clone it in the model"
        else:
            continue
        path.unlink()
        raise InputError(f"{name} {wrong}")


def save_sharded_checkpoint(checkpoint: Checkpoint, folder: Path, confirm: Callable[[], None] | None = None) -> None:
    """Write a folder `last.ckpt` with the shards of all processes, which must all call this; keep an existing one.

    Args:
        checkpoint: The checkpoint, with the shards of this process.
        folder: Folder of the checkpoints.
        confirm: Called right before files are replaced; if it raises, existing checkpoints are unchanged.

    Raises:
        OSError: If it cannot be written; existing checkpoints are then unchanged.
    """
    temporary = folder / f".new-{LAST}.tmp"
    if write_shards(checkpoint, temporary):
        if confirm is not None:
            confirm()
        finish_saving(folder)
        temporary.replace(folder / f"new-{LAST}")
        finish_saving(folder)


def finish_saving(folder: Path) -> None:
    """Rename a complete new checkpoint to `last.ckpt`, in case a process was killed before it could.

    Raises:
        OSError: If it cannot be renamed.
    """
    new, last, previous = folder / f"new-{LAST}", folder / LAST, folder / PREVIOUS
    if not new.exists():
        return
    # If killed between these lines, the last or the previous checkpoint is missing, but the others are complete.
    if last.exists():
        if last.is_dir() or previous.is_dir():  # only a file can replace a file
            remove_checkpoint(previous)
        last.replace(previous)
    new.replace(last)


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint, if it exists, such that no part of it is left under its name.

    Raises:
        OSError: If it cannot be removed.
    """
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    aside = path.with_name(f".{path.name}.tmp")
    shutil.rmtree(aside, ignore_errors=True)
    path.replace(aside)
    shutil.rmtree(aside)


def load_newest(
    folder: Path,
    fingerprint: str,
    steps: int | None = None,
    like: dict[str, Tensor] | None = None,
    kept: list[dict[str, torch.Size]] | None = None,
    *,
    set_aside: bool = False,
) -> tuple[Checkpoint | None, list[str]]:
    """Return the valid checkpoint of a run with the most steps, if any, and what is wrong with the others.

    Args:
        folder: Folder of the checkpoints.
        fingerprint: Fingerprint of the run that they must belong to.
        steps: Steps of the whole run, which no checkpoint may exceed; None for any number.
        like: State dict of a model that the checkpoint must fit; None for any.
        kept: Shapes of the optimizer state, from `liere.training.optimizer.kept_shapes`; None for any.
        set_aside: Whether to rename rejected files, which could otherwise replace or block a valid checkpoint.

    Raises:
        ForeignCheckpointError: If all checkpoints belong to other runs: starting over would overwrite them.
    """
    newest: Checkpoint | None = None
    refused: dict[Path, CheckpointError] = {}
    for path in (folder / f"new-{LAST}", folder / LAST, folder / PREVIOUS):
        if _is_there(path):
            try:
                found = load_checkpoint(path, fingerprint, steps, like, kept)
            except CheckpointError as error:
                refused[path] = error
            except OSError:
                if newest is None:
                    raise  # the unreadable file may be the newest
            else:
                newest = found if newest is None or found.step > newest.step else newest
    for foreign in refused.values() if newest is None else ():
        if isinstance(foreign, ForeignCheckpointError):
            raise ForeignCheckpointError(
                f"{foreign}; if config.yaml was changed, restore it, or move {folder} away to start over"
            )
    for path in refused if set_aside else ():
        _set_aside(path)
    return newest, [str(error) for error in refused.values()]


def _is_there(path: Path) -> bool:
    """Return whether a path exists, even as a broken link; other system errors are raised."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


def _set_aside(path: Path) -> None:
    aside, number = path.with_name(f"refused-{path.name}"), 1
    while aside.is_dir() or (path.is_dir() and _is_there(aside)):  # only a file can replace a file
        number += 1
        aside = path.with_name(f"refused-{number}-{path.name}")
    path.replace(aside)


def load_checkpoint(
    path: Path,
    fingerprint: str | None = None,
    steps: int | None = None,
    like: dict[str, Tensor] | None = None,
    kept: list[dict[str, torch.Size]] | None = None,
) -> Checkpoint:
    """Return the checkpoint in a file, or in a folder of shards, after validating it.

    Args:
        path: The file or folder.
        fingerprint: Fingerprint of the run that it must belong to; None for any.
        steps: Steps of the whole run, which it may not exceed; None for any number.
        like: State dict of a model that it must fit; None for any.
        kept: Shapes of the optimizer state, from `liere.training.optimizer.kept_shapes`; None for any.

    Raises:
        CheckpointError: If it is damaged, not a checkpoint, or belongs to another run.
        OSError: If the system cannot read it; damaged files raise `CheckpointError` instead.
    """
    with naming(path):
        content = _read_folder(path) if (path / INDEX).exists() else _read_file(path)
    return check_content(content, path, fingerprint, steps, like, kept)


def _read_file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise CheckpointError(f"{path} is not a checkpoint, because it is not a file: it is not used")
    try:
        check_torch_file(path)
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()  # torch does not verify checksums
        content = None if damaged else torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise  # the file may be fine
    except UnusualFileError as error:
        raise CheckpointError(f"{path} is damaged or not a checkpoint (it {error.what}): it is not used") from None
    except Exception as error:
        if is_system_error(error):
            raise
        reason = type(error).__name__
        raise CheckpointError(f"{path} is truncated or not a checkpoint ({reason}): it is not used") from error
    if damaged:
        raise CheckpointError(f"{path} is damaged (wrong checksum of {damaged}): it is not used")
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise ForeignCheckpointError(f"{path} is not a liere checkpoint: it is not used")
    return content


def _read_folder(path: Path) -> dict[str, Any]:
    try:
        return read_shards(path)
    except (CheckpointError, MemoryError):
        raise
    except Exception as error:
        if is_system_error(error):
            raise
        reason = type(error).__name__
        raise CheckpointError(f"{path} is damaged or not a checkpoint ({reason}): it is not used") from error
