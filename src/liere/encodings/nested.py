"""Rotation of nested tensors: sequences of several lengths in one batch, stored without padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from liere.errors import InputError, InputTypeError

__all__ = ["check_no_prefix", "has_nested", "rotate_nested"]

Rotate = Callable[[Tensor, Tensor, Tensor | None, Tensor | None], tuple[Tensor, Tensor]]


def has_nested(*tensors: Tensor | None) -> bool:
    """Return whether one of the tensors is nested."""
    return any(isinstance(x, Tensor) and x.is_nested for x in tensors)


def check_no_prefix(num_prefix_tokens: int, k_num_prefix_tokens: int) -> None:
    """Raise `ValueError` if there are prefix tokens, which are not the leading tokens of a packed sequence."""
    if num_prefix_tokens or k_num_prefix_tokens:
        raise InputError(
            f"num_prefix_tokens={num_prefix_tokens or k_num_prefix_tokens} does not work with nested tensors: leave it "
            "out, and give prefix tokens position 0, which rotates nothing"
        )


def rotate_nested(
    rotate: Rotate, q: Tensor, k: Tensor, positions: Tensor | None, k_positions: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Rotate nested queries and keys `[batch, heads, ragged, head_dim]` as one packed sequence.

    Args:
        rotate: Function of packed queries and keys `[heads, tokens, head_dim]` and positions `[tokens, ndim]`.
        q: Queries.
        k: Keys.
        positions: Positions `[batch, ragged, ndim]` of the queries, or None.
        k_positions: Positions of the keys, or None.
    """
    for name, x, axes in [("q", q, 4), ("k", k, 4), ("positions", positions, 3), ("k_positions", k_positions, 3)]:
        if x is not None:
            _check_jagged(name, x, axes)
    q_values, k_values = (x.transpose(1, 2).values().transpose(0, 1) for x in (q, k))
    p_values, kp_values = (None if p is None else p.values() for p in (positions, k_positions))
    for name, x, p_name, p in [
        ("q", q, "positions", positions),
        ("k", k, *(("positions", positions) if k_positions is None else ("k_positions", k_positions))),
    ]:
        if p is not None:
            _check_lengths(name, x, p_name, p)
    rotated = rotate(q_values, k_values, p_values, kp_values)
    q_rotated, k_rotated = (
        torch.nested.nested_tensor_from_jagged(values.transpose(0, 1).contiguous(), _offsets(x)).transpose(1, 2)
        for values, x in zip(rotated, (q, k), strict=True)
    )
    return q_rotated, k_rotated


def _check_jagged(name: str, x: Tensor, axes: int) -> None:
    needed = "[batch, heads, ragged, head_dim]" if axes == 4 else "[batch, ragged, ndim]"
    if not x.is_nested:
        raise InputTypeError(
            f"{name} is an ordinary tensor, but others are nested: make all of them nested, {name} as {needed}"
        )
    if x.layout != torch.jagged:
        raise InputTypeError(f"{name} must have the layout torch.jagged, got {x.layout}: pass layout=torch.jagged")
    if x.ndim != axes or getattr(x, "_ragged_idx", axes - 2) != axes - 2:
        raise InputError(f"{name} is nested with shape {list(x.shape)}, but must be {needed}: transpose it")
    if x.lengths() is not None:  # type: ignore[attr-defined]
        raise InputError(f"{name} is nested and has gaps between its sequences: call .contiguous() on it first")


def _offsets(x: Any) -> Tensor:
    return x.offsets()


def _check_lengths(name: str, x: Tensor, p_name: str, positions: Tensor) -> None:
    ours, theirs = _offsets(x), _offsets(positions)
    # Comparing the offsets on other devices would synchronize.
    same = torch.equal(ours, theirs) if ours.device.type == "cpu" else x.values().shape[-2] == len(positions.values())
    if not same:
        lengths = [offsets.diff().tolist() for offsets in (ours, theirs)]
        raise InputError(
            f"{name} has sequences of lengths {lengths[0]}, but {p_name} of {lengths[1]}: pass one position per token"
        )
