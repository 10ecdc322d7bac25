"""Rotation of the queries and keys of other libraries' attention."""

from __future__ import annotations

from torch import Tensor

from liere.encodings.contract import Rotations
from liere.encodings.layer_rotation import rotate_layer

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
    return rotate_layer(q, k, rotations, num_prefix_tokens)
