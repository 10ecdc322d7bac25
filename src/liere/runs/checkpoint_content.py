"""What a checkpoint contains, and whether it is valid."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from liere.errors import InputError
from liere.files.reading import shorten

__all__ = ["Checkpoint", "CheckpointError", "ForeignCheckpointError", "check_content"]

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


def check_content(
    content: dict[str, Any],
    path: Path,
    fingerprint: str | None = None,
    steps: int | None = None,
    like: dict[str, Tensor] | None = None,
    kept: list[dict[str, torch.Size]] | None = None,
) -> Checkpoint:
    """Return a checkpoint with these fields, after validating them; see `load_checkpoint` for the arguments.

    Raises:
        CheckpointError: If they are not those of a complete checkpoint, or it belongs to another run.
    """
    fields = {field.name for field in dataclasses.fields(Checkpoint)}
    if set(content) != fields:
        differing = shorten(", ".join(sorted(map(str, fields ^ set(content)))))
        raise ForeignCheckpointError(f"{path} is from another version (it differs in {differing}): it is not used")
    if fingerprint is not None and content["fingerprint"] != fingerprint:
        raise ForeignCheckpointError(f"{path} belongs to a run with another configuration: it is not used")
    try:
        wrong = _wrong_field(content, steps, like, kept)
    except Exception as error:  # by comparing what no checkpoint contains
        raise CheckpointError(f"{path} is damaged ({type(error).__name__} in its fields): it is not used") from error
    if wrong is not None:
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
    """Return what has to be the same from step to step: of extra state, which may grow, only the layout."""
    return {
        name: (tensor.layout,) if name.endswith(EXTRA) else (tensor.layout, tensor.dtype, tensor.shape)
        for name, tensor in tensors.items()
    }


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
    """Return whether the optimizer state of a parameter has exactly the expected entries and shapes.

    Fused optimizers update it as one range of memory, and would write outside of it if it were smaller than it claims.
    """
    return state.keys() == shapes.keys() and all(
        isinstance(value, Tensor)
        and value.layout == torch.strided
        and _is_dense(value)
        and not value.is_neg()  # a view, which fused optimizers refuse
        and value.is_floating_point()
        and value.shape == shapes[name]
        for name, value in state.items()
    )


def _is_dense(tensor: Tensor) -> bool:
    """Return whether the elements fill a range of memory, in whatever order of the axes, as in any parameter."""
    filled = 1
    for stride, length in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if length > 1 and stride != filled:
            return False
        filled *= length
    return True


def _is_journal(content: Any, step: int) -> bool:
    if not isinstance(content, dict) or content.keys() != {"losses", "best", "reached_target"}:
        return False
    losses, best = content["losses"], content["best"]
    if not isinstance(losses, list) or [type(number) for number in losses] != [float, int] or losses[1] < 0:
        return False
    is_best = best is None or (
        isinstance(best, dict)
        and best.keys() == {"step", "accuracy", "loss"}
        and [type(best.get(name)) for name in ("step", "accuracy", "loss")] == [int, float, float]
        and 0 < best["step"] <= step
        and 0 <= best["accuracy"] <= 1
    )
    return is_best and isinstance(content["reached_target"], bool)
