"""Checkpoints: written as a whole or not at all, read without executing code, checked before they are believed."""

from __future__ import annotations

import dataclasses
import io
import math
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from liere.files import is_machine_trouble, write_atomically
from liere.reading import check_stored_zip

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "ForeignCheckpointError",
    "load_checkpoint",
    "load_newest",
    "save_checkpoint",
    "save_weights",
]

FORMAT = "liere-checkpoint-1"
LAST, PREVIOUS = "last.ckpt", "previous.ckpt"


class CheckpointError(ValueError):
    """A file that is not a whole checkpoint of this run."""


class ForeignCheckpointError(CheckpointError):
    """A whole file of something else: of another run, another version, another program."""


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """All that is needed to go on.

    Attributes:
        fingerprint: Of the run it belongs to.
        step: Steps that were taken.
        seconds: Time that they took.
        state_dict: The model's.
        optimizer: The optimiser's state dict.
        journal: What the log has not written yet, and the best score so far.
    """

    fingerprint: str
    step: int
    seconds: float
    state_dict: dict[str, Tensor]
    optimizer: dict[str, Any]
    journal: dict[str, Any]


def save_checkpoint(checkpoint: Checkpoint, folder: Path) -> None:
    """Write `last.ckpt`; the one that was there before is kept as `previous.ckpt`.

    Raises:
        OSError: If it cannot be written. What was there before is then still there.
    """
    buffer = io.BytesIO()
    torch.save({"format": FORMAT} | vars(checkpoint), buffer)
    new = folder / f"new-{LAST}"
    write_atomically(new, buffer.getbuffer())
    # Killed between these two lines, there is no last checkpoint, but the new one and the previous one are whole.
    if (folder / LAST).exists():
        (folder / LAST).replace(folder / PREVIOUS)
    new.replace(folder / LAST)


def load_newest(
    folder: Path, fingerprint: str, steps: int | None = None, like: dict[str, Tensor] | None = None
) -> tuple[Checkpoint | None, list[str]]:
    """Return the newest whole checkpoint of a run, if there is one, and what is wrong with those that are newer.

    Args:
        folder: Where checkpoints are.
        fingerprint: Of the run that they have to belong to.
        steps: Steps of the whole run, which none can be beyond; None for any number.
        like: State dict of a model that it has to fit; None for any.

    Raises:
        ForeignCheckpointError: If there are only such that are not of this run: beginning anew would overwrite them.
    """
    refused: list[CheckpointError] = []
    for name in (f"new-{LAST}", LAST, PREVIOUS):
        path = folder / name
        if path.exists():
            try:
                return load_checkpoint(path, fingerprint, steps, like), [str(error) for error in refused]
            except CheckpointError as error:
                refused.append(error)
    for foreign in refused:
        if isinstance(foreign, ForeignCheckpointError):
            raise ForeignCheckpointError(
                f"{foreign}; was config.yaml changed? Put it back, or move {folder} away to begin anew"
            )
    return None, [str(error) for error in refused]


def load_checkpoint(
    path: Path, fingerprint: str | None = None, steps: int | None = None, like: dict[str, Tensor] | None = None
) -> Checkpoint:
    """Read a checkpoint.

    Args:
        path: The file.
        fingerprint: Of the run that it has to belong to; None for any.
        steps: Steps of the whole run, which it cannot be beyond; None for any number.
        like: State dict of a model that it has to fit; None for any.

    Raises:
        CheckpointError: If it is damaged, not a checkpoint, or of another run.
        OSError: If the machine cannot read it. What a damaged file makes of reading is no such trouble.
    """
    if not path.is_file():
        raise CheckpointError(f"{path} is not a checkpoint, not even a file: it is not used")
    try:
        check_stored_zip(path)
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()  # torch does not look at checksums
        content = None if damaged else torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise  # nothing is known of the file
    except Exception as error:
        if is_machine_trouble(error):
            raise
        reason = type(error).__name__
        raise CheckpointError(f"{path} is truncated or not a checkpoint ({reason}): it is not used") from error
    if damaged:
        raise CheckpointError(f"{path} is damaged ({damaged} is not what was written): it is not used")
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise ForeignCheckpointError(f"{path} is not a checkpoint of this library: it is not used")
    fields = {field.name for field in dataclasses.fields(Checkpoint)}
    if set(content) != fields:
        differing = ", ".join(sorted(map(str, fields ^ set(content))))
        raise ForeignCheckpointError(f"{path} is not a checkpoint of this version ({differing}): it is not used")
    if fingerprint is not None and content["fingerprint"] != fingerprint:
        raise ForeignCheckpointError(f"{path} belongs to a run with another configuration: it is not used")
    for field, is_right in _checks(content, steps, like).items():
        if not is_right:
            raise CheckpointError(f"{path} is damaged (its {field} cannot be): it is not used")
    return Checkpoint(**content)


def _checks(content: dict[str, Any], steps: int | None, like: dict[str, Tensor] | None) -> dict[str, bool]:
    """Return for each field whether it can be what training has saved."""
    step, seconds = content["step"], content["seconds"]
    return {
        "step": type(step) is int and step > 0 and (steps is None or step <= steps),
        "seconds": isinstance(seconds, float | int) and math.isfinite(seconds) and seconds >= 0,
        "state_dict": _is_state_dict(content["state_dict"], like),
        "optimizer": _is_optimizer(content["optimizer"], like),
        "journal": _is_journal(content["journal"]),
    }


def _is_state_dict(content: Any, like: dict[str, Tensor] | None) -> bool:
    if not isinstance(content, dict) or not all(isinstance(tensor, Tensor) for tensor in content.values()):
        return False
    return like is None or {name: tensor.shape for name, tensor in content.items()} == {
        name: tensor.shape for name, tensor in like.items()
    }


def _is_optimizer(content: Any, like: dict[str, Tensor] | None) -> bool:
    if not isinstance(content, dict) or "param_groups" not in content or not isinstance(content.get("state"), dict):
        return False
    states = content["state"].values()
    if not states or not all(isinstance(state, dict) for state in states):
        return False
    # Which average belongs to which parameter is for the optimizer to know; a shape of no parameter is of none.
    shapes = {torch.Size(), *(tensor.shape for tensor in (like or {}).values())}
    averages = [value for state in states for value in state.values() if isinstance(value, Tensor)]
    return like is None or (len(states) <= len(like) and all(average.shape in shapes for average in averages))


def _is_journal(content: Any) -> bool:
    if not isinstance(content, dict) or not {"losses", "best", "reached_target"} <= content.keys():
        return False
    losses, best = content["losses"], content["best"]
    return (
        isinstance(losses, list)
        and [type(number) for number in losses] == [float, int]
        and (best is None or (isinstance(best, dict) and {"step", "accuracy", "loss"} <= best.keys()))
        and isinstance(content["reached_target"], bool)
    )


def save_weights(weights: dict[str, Tensor], path: Path) -> None:
    """Write weights as safetensors, whole or not at all.

    Raises:
        OSError: If it cannot be written.
    """
    from safetensors.torch import save

    write_atomically(path, save({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}))
