"""What the weights of a converted model mean, in its state dict: a warning where they would mean something else."""

from __future__ import annotations

import contextlib
import json
import warnings
from typing import Any

import torch
from torch import Tensor, nn

from liere.integrations.position_rules import GridRule, PositionRule, RopeRule

__all__ = ["Described"]

LENGTH = 256
"""Bytes of a description: always the same, since distributed checkpoints compare shapes."""
ON_GRID = ("kind", "offset", "reference", "normalize")
"""What of a `RopeRule` places patches; all else draws random numbers in training."""


class Described(nn.Module):
    """A model whose state dict holds a line of text, as a tensor of its bytes, which safetensors can store."""

    position_rule: PositionRule
    halves: bool

    def get_extra_state(self) -> Tensor:
        """Return where the positions of the model come from, which weights do not show."""
        text = json.dumps(_describe(self)).ljust(LENGTH)
        return torch.tensor(list(text.encode("ascii")), dtype=torch.uint8, device="cpu")

    def set_extra_state(self, state: Any) -> None:
        """Warn if the weights of a state dict come from a model that was converted in another way."""
        given, own = _read(state), _describe(self)
        names = [name for name in own if given is not None and given.get(name, own[name]) != own[name]]
        if not names or given is None:
            return
        theirs, ours = (", ".join(f"{name}={_show(each[name])}" for name in names) for each in (given, own))
        warnings.warn(
            f"these weights belong to a conversion with {theirs}, but this model has {ours}, so its logits will "
            "differ: convert with the same start, keep_rope and image size before loading",
            stacklevel=2,
        )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        super()._load_from_state_dict(state_dict, prefix, *rest)
        missing_keys = rest[2]
        with contextlib.suppress(ValueError):
            missing_keys.remove(f"{prefix}_extra_state")  # absent from weights of the original


def _describe(model: Any) -> dict[str, Any]:
    """Return what loading compares, in terms that JSON keeps."""
    rule = model.position_rule
    places = {name: getattr(rule, name) for name in ON_GRID} if isinstance(rule, RopeRule) else {}
    found = {
        "start": "rope" if isinstance(rule, RopeRule) else "identity",
        "keep_rope": getattr(model, "rope", None) is not None,
        "halves": model.halves,
        "grid": rule.reference if isinstance(rule, GridRule) else None,
        **places,
    }
    return dict(json.loads(json.dumps(found)))


def _read(state: Any) -> dict[str, Any] | None:
    """Return a description that was read from a file, or None where there is none, as on `meta`."""
    if not isinstance(state, Tensor) or state.is_meta or state.numel() != LENGTH:
        return None
    with contextlib.suppress(ValueError, TypeError, RuntimeError, OverflowError):
        found = json.loads(bytes(int(code) for code in state.flatten().tolist()))
        return found if isinstance(found, dict) else None
    return None


def _show(value: Any) -> str:
    return repr(tuple(value) if isinstance(value, list) else value)
