"""Rotation of the queries and keys of other libraries' attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.utils.checkpoint import checkpoint

from liere.encodings.contract import Rotations
from liere.rotations import rotate_together

__all__ = ["interleave", "turn"]


def interleave(x: Tensor) -> Tensor:
    """Return `[..., head_dim]` with the two halves of a head taken in turns.

    Queries and keys are both reordered, so that their products stay the same.

    Example:
        >>> import torch
        >>> interleave(torch.arange(6))
        tensor([0, 3, 1, 4, 2, 5])
    """
    return x.unflatten(-1, (2, -1)).transpose(-1, -2).flatten(-2)


def turn(q: Tensor, k: Tensor, rotations: Rotations, num_prefix_tokens: int, *, halves: bool = False) -> list[Tensor]:
    """Return queries and keys `[batch, heads, tokens, head_dim]`, rotated.

    Args:
        q: Queries.
        k: Keys.
        rotations: The rotations of their layer.
        num_prefix_tokens: Number of leading tokens that are not rotated.
        halves: Whether planes are made of the two halves of a head, so that these are interleaved before rotating.
    """
    if halves:
        q, k = interleave(q), interleave(k)
    if rotations is None:
        return [q, k]
    if callable(rotations):  # made again in the backward pass
        options: dict[str, Any] = {"use_reentrant": False, "preserve_rng_state": False}
        return checkpoint(_turn_lazily, q, k, rotations, num_prefix_tokens, **options)
    return rotate_together([q, k], rotations, num_prefix_tokens)


def _turn_lazily(q: Tensor, k: Tensor, rotations: Callable[[], Tensor], num_prefix_tokens: int) -> list[Tensor]:
    return rotate_together([q, k], rotations(), num_prefix_tokens)
