"""Checkpoints: written as a whole or not at all, read without executing code, checked before they are believed."""

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
EXTRA = "_extra_state"  # how torch calls what a module saves besides parameters and buffers
MOST_COUNTED = 2**24  # steps, by the optimizer: it counts in fp32


class CheckpointError(InputError):
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
    write_atomically(folder / f"new-{LAST}", buffer.getbuffer())
    finish_saving(folder)


def finish_saving(folder: Path) -> None:
    """Put a new, whole checkpoint in its place, if there is one: a process may have been killed before it did.

    Raises:
        OSError: If it cannot be renamed.
    """
    new = folder / f"new-{LAST}"
    if not new.exists():
        return
    # Killed between these two lines, there is no last checkpoint, but the new one and the previous one are whole.
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
    """Return the whole checkpoint of a run with the most steps, if there is one, and what is wrong with others.

    Args:
        folder: Where checkpoints are.
        fingerprint: Of the run that they have to belong to.
        steps: Steps of the whole run, which none can be beyond; None for any number.
        like: State dict of a model that it has to fit; None for any.
        kept: What the optimizer keeps, as `liere.training.optimizer.kept_shapes` has it; None for any.
        set_aside: Rename what is refused: where it is, it would take the place of a whole one, or be in its way.

    Raises:
        ForeignCheckpointError: If there are only such that are not of this run: beginning anew would overwrite them.
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
                    raise  # it may be the newest
            else:
                newest = found if newest is None or found.step > newest.step else newest
    for foreign in refused.values() if newest is None else ():
        if isinstance(foreign, ForeignCheckpointError):
            raise ForeignCheckpointError(
                f"{foreign}; was config.yaml changed? Put it back, or move {folder} away to begin anew"
            )
    for path in refused if set_aside else ():
        _set_aside(path)
    return newest, [str(error) for error in refused.values()]


def _is_there(path: Path) -> bool:
    """Return whether there is anything, a link to nothing included; trouble of the machine is not taken for nothing."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


def _set_aside(path: Path) -> None:
    aside, number = path.with_name(f"refused-{path.name}"), 1
    while aside.is_dir() or (path.is_dir() and _is_there(aside)):  # a file can replace a file, and that is all
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
    """Read a checkpoint.

    Args:
        path: The file.
        fingerprint: Of the run that it has to belong to; None for any.
        steps: Steps of the whole run, which it cannot be beyond; None for any number.
        like: State dict of a model that it has to fit; None for any.
        kept: What the optimizer keeps, as `liere.training.optimizer.kept_shapes` has it; None for any.

    Raises:
        CheckpointError: If it is damaged, not a checkpoint, or of another run.
        OSError: If the machine cannot read it. What a damaged file makes of reading is no such trouble.
    """
    if not path.is_file():
        raise CheckpointError(f"{path} is not a checkpoint, not even a file: it is not used")
    try:
        check_torch_file(path)
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()  # torch does not look at checksums
        content = None if damaged else torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise  # nothing is known of the file
    except Exception as error:
        if is_system_error(error):
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
    if (wrong := _wrong_field(content, steps, like, kept)) is not None:
        raise CheckpointError(f"{path} is damaged (its {wrong} cannot be): it is not used")
    return Checkpoint(**content)


def _wrong_field(
    content: dict[str, Any],
    steps: int | None,
    like: dict[str, Tensor] | None,
    kept: list[dict[str, torch.Size]] | None,
) -> str | None:
    """Return the first field that cannot be what training has saved."""
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
    # Earlier versions saved no grid.
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
    for number, state in states.items():  # a parameter that never had a gradient has none
        if type(number) is not int or not 0 <= number < len(kept) or not _fits(state, kept[number]):
            return False
    taken = [float(state["step"]) for state in states.values() if "step" in state]
    most = min(step, MOST_COUNTED)
    return not taken or (max(taken) == most and all(0 < count <= most for count in taken))


def _fits(state: dict[str, Any], shapes: dict[str, torch.Size]) -> bool:
    """Return whether all that an optimizer keeps for a parameter is there, and nothing else."""
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
