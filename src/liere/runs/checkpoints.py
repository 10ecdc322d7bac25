"""Checkpoints: written atomically, read without executing code, and validated before use."""

from __future__ import annotations

import dataclasses
import io
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from liere.errors import InputError
from liere.files.torch_files import check_torch_file
from liere.files.writing import is_system_error, write_atomically

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "ForeignCheckpointError",
    "finish_saving",
    "load_checkpoint",
    "load_newest",
    "save_checkpoint",
]

FORMAT = "liere-checkpoint-1"
LAST, PREVIOUS = "last.ckpt", "previous.ckpt"
LONGEST_SECONDS = 1e12
EXTRA = "_extra_state"  # torch's key for state other than parameters and buffers
MOST_COUNTED = 2**24  # the optimizer counts steps in fp32, which is exact up to here


class CheckpointError(InputError):
    """Raised when a file is not a complete checkpoint of this run."""


class ForeignCheckpointError(CheckpointError):
    """Raised when a file is complete but belongs to another run, version or program."""


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Everything needed to resume training.

    Attributes:
        fingerprint: Fingerprint of the run it belongs to.
        step: Number of completed steps.
        seconds: Training time so far.
        state_dict: State dict of the model.
        optimizer: State dict of the optimizer.
        journal: Log entries not written yet, and the best score so far.
    """

    fingerprint: str
    step: int
    seconds: float
    state_dict: dict[str, Tensor]
    optimizer: dict[str, Any]
    journal: dict[str, Any]


def save_checkpoint(checkpoint: Checkpoint, folder: Path) -> None:
    """Write `last.ckpt`; an existing one is kept as `previous.ckpt`.

    Raises:
        OSError: If it cannot be written; existing checkpoints are then unchanged.
    """
    buffer = io.BytesIO()
    torch.save({"format": FORMAT} | vars(checkpoint), buffer)
    write_atomically(folder / f"new-{LAST}", buffer.getbuffer())
    finish_saving(folder)


def finish_saving(folder: Path) -> None:
    """Rename a complete new checkpoint to `last.ckpt`, in case a process was killed before it could.

    Raises:
        OSError: If it cannot be renamed.
    """
    new = folder / f"new-{LAST}"
    if not new.exists():
        return
    # If killed between these two lines, the last checkpoint is missing, but the new and the previous are complete.
    if (folder / LAST).exists():
        (folder / LAST).replace(folder / PREVIOUS)
    new.replace(folder / LAST)


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
    """Return the checkpoint in a file, after validating it.

    Args:
        path: The file.
        fingerprint: Fingerprint of the run that it must belong to; None for any.
        steps: Steps of the whole run, which it may not exceed; None for any number.
        like: State dict of a model that it must fit; None for any.
        kept: Shapes of the optimizer state, from `liere.training.optimizer.kept_shapes`; None for any.

    Raises:
        CheckpointError: If it is damaged, not a checkpoint, or belongs to another run.
        OSError: If the system cannot read it; damaged files raise `CheckpointError` instead.
    """
    if not path.is_file():
        raise CheckpointError(f"{path} is not a checkpoint, because it is not a file: it is not used")
    try:
        check_torch_file(path)
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()  # torch does not verify checksums
        content = None if damaged else torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise  # the file may be fine
    except Exception as error:
        if is_system_error(error):
            raise
        reason = type(error).__name__
        raise CheckpointError(f"{path} is truncated or not a checkpoint ({reason}): it is not used") from error
    if damaged:
        raise CheckpointError(f"{path} is damaged (wrong checksum of {damaged}): it is not used")
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise ForeignCheckpointError(f"{path} is not a liere checkpoint: it is not used")
    fields = {field.name for field in dataclasses.fields(Checkpoint)}
    if set(content) != fields:
        differing = ", ".join(sorted(map(str, fields ^ set(content))))
        raise ForeignCheckpointError(f"{path} is from another version (it differs in {differing}): it is not used")
    if fingerprint is not None and content["fingerprint"] != fingerprint:
        raise ForeignCheckpointError(f"{path} belongs to a run with another configuration: it is not used")
    if (wrong := _wrong_field(content, steps, like, kept)) is not None:
        raise CheckpointError(f"{path} is damaged (invalid {wrong}): it is not used")
    return Checkpoint(**content)


def _wrong_field(
    content: dict[str, Any],
    steps: int | None,
    like: dict[str, Tensor] | None,
    kept: list[dict[str, torch.Size]] | None,
) -> str | None:
    """Return the name of the first invalid field; None if all are valid."""
    step, seconds = content["step"], content["seconds"]
    if type(step) is not int or step <= 0 or (steps is not None and step > steps):
        return "step"
    if type(seconds) not in (float, int) or not 0 <= seconds <= LONGEST_SECONDS:
        return "seconds"
    if not _is_state_dict(content["state_dict"], like):
        return "state_dict"
    if not _is_optimizer(content["optimizer"], step, kept):
        return "optimizer"
    return None if _is_journal(content["journal"], step) else "journal"


def _is_state_dict(content: Any, like: dict[str, Tensor] | None) -> bool:
    if not isinstance(content, dict) or not all(isinstance(tensor, Tensor) for tensor in content.values()):
        return False
    if like is None:
        return True
    expected = _kinds(like)
    # Earlier versions did not save the grid.
    left_out = [name for name in expected if name not in content and name.endswith(EXTRA)]
    return _kinds(content) == {name: kind for name, kind in expected.items() if name not in left_out}


def _kinds(tensors: dict[str, Tensor]) -> dict[str, Any]:
    return {name: (tensor.layout, tensor.dtype, tensor.shape) for name, tensor in tensors.items()}


def _is_optimizer(content: Any, step: int, kept: list[dict[str, torch.Size]] | None) -> bool:
    if not isinstance(content, dict) or "param_groups" not in content or not isinstance(content.get("state"), dict):
        return False
    states = content["state"]
    if not states or not all(isinstance(state, dict) for state in states.values()):
        return False
    if kept is None:
        return True
    for number, state in states.items():  # a parameter that never had a gradient has no state
        if type(number) is not int or not 0 <= number < len(kept) or not _fits(state, kept[number]):
            return False
    taken = [float(state["step"]) for state in states.values() if "step" in state]
    most = min(step, MOST_COUNTED)
    return not taken or (max(taken) == most and all(0 < count <= most for count in taken))


def _fits(state: dict[str, Any], shapes: dict[str, torch.Size]) -> bool:
    """Return whether the optimizer state of a parameter has exactly the expected entries and shapes."""
    return state.keys() == shapes.keys() and all(
        isinstance(value, Tensor)
        and value.layout == torch.strided
        and value.is_floating_point()
        and value.shape == shapes[name]
        for name, value in state.items()
    )


def _is_journal(content: Any, step: int) -> bool:
    if not isinstance(content, dict) or not {"losses", "best", "reached_target"} <= content.keys():
        return False
    losses, best = content["losses"], content["best"]
    if not isinstance(losses, list) or [type(number) for number in losses] != [float, int] or losses[1] < 0:
        return False
    is_best = best is None or (
        isinstance(best, dict)
        and [type(best.get(name)) for name in ("step", "accuracy", "loss")] == [int, float, float]
        and 0 < best["step"] <= step
        and 0 <= best["accuracy"] <= 1
    )
    return is_best and isinstance(content["reached_target"], bool)
