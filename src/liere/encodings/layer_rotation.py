"""Rotation of the queries and keys of a layer by what an encoding yields for it."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.utils.checkpoint import checkpoint

from liere.encodings.contract import Rotations, StreamedRotations
from liere.rotations import rotate_by_positions, rotate_together

__all__ = ["rotate_layer"]


def rotate_layer(q: Tensor, k: Tensor, rotations: Rotations, num_prefix_tokens: int) -> list[Tensor]:
    """Return queries and keys `[batch, heads, tokens, head_dim]`, rotated.

    Args:
        q: Queries.
        k: Keys.
        rotations: The rotations of the layer. A function that makes them is called again in the backward pass.
        num_prefix_tokens: Number of leading tokens that are not rotated.
    """
    if rotations is None:
        return [q, k]
    if isinstance(rotations, StreamedRotations):
        return rotate_by_positions([q, k], rotations.positions, rotations.generators, num_prefix_tokens)
    if callable(rotations):
        return checkpoint(
            _make_and_rotate, q, k, rotations, num_prefix_tokens, use_reentrant=False, preserve_rng_state=False
        )
    return rotate_together([q, k], rotations, num_prefix_tokens)


def _make_and_rotate(q: Tensor, k: Tensor, rotations: Callable[[], Tensor], num_prefix_tokens: int) -> list[Tensor]:
    return rotate_together([q, k], rotations(), num_prefix_tokens)
