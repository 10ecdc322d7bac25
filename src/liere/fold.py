"""Folding 1-D LieRE into RoPE: on one axis, LieRE is RoPE in another basis of the head."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from liere.encodings.rotary import RotaryEncoding
from liere.errors import InputError, InputTypeError
from liere.generators import rotation_planes
from liere.shapes import Float

__all__ = ["FoldedRoPE", "fold_1d"]


class FoldedRoPE(NamedTuple):
    """Query and key projections for plain RoPE, and its frequencies."""

    q_weight: Tensor  # [heads * head_dim, dim]
    k_weight: Tensor  # [heads * head_dim, dim]
    q_bias: Tensor | None  # [heads * head_dim]
    k_bias: Tensor | None  # [heads * head_dim]
    frequencies: Tensor  # [heads, head_dim // 2], fp32 or higher


def fold_1d(
    rope: RotaryEncoding,
    q_weight: Float[Tensor, "rows dim"],
    k_weight: Float[Tensor, "rows dim"],
    q_bias: Float[Tensor, "rows"] | None = None,
    k_bias: Float[Tensor, "rows"] | None = None,
    *,
    layer: int = 0,
) -> FoldedRoPE:
    """Convert a 1-D LieRE attention layer to plain RoPE with the same attention scores.

    On one axis `R(t) = exp(t A) = S.mT exp(t L) S`, where `S` is orthogonal and does not depend on the position, and
    `L` consists of 2x2 blocks. Moving `S` into the query and key projections does not change the scores.

    The result is RoPE on interleaved pairs: dimensions `2i` and `2i + 1` of a head are rotated by
    `[[cos, -sin], [sin, cos]]` of the angle `position * frequencies[head, i]`. Dimensions that are not rotated have
    frequency 0. Layers that normalize queries or keys after their projection cannot be folded.

    Args:
        rope: A rotary encoding with `ndim=1`.
        q_weight: Weight of the query projection, as in `nn.Linear`, head by head.
        k_weight: Weight of the key projection.
        q_bias: Bias of the query projection.
        k_bias: Bias of the key projection.
        layer: Index of the layer whose generators are folded.

    Returns:
        The new weights and biases, and the frequencies.

    Raises:
        TypeError: If `rope` is not a rotary encoding.
        ValueError: If the encoding has more than one axis or the weights do not match its heads.

    Example:
        >>> from liere import LieRE
        >>> rope = LieRE(1, 16, num_heads=4, block_size=16)
        >>> folded = fold_1d(rope, torch.randn(64, 64), torch.randn(64, 64))
        >>> folded.frequencies.shape
        torch.Size([4, 8])
    """
    if not isinstance(rope, RotaryEncoding):
        raise InputTypeError(f"rope must be a rotary encoding such as LieRE, got {type(rope).__name__}")
    if rope.ndim != 1:
        raise InputError(f"rope has ndim={rope.ndim}, but only an encoding with ndim=1 can be folded into RoPE")
    basis, frequencies = _head_basis(rope, layer)
    return FoldedRoPE(
        q_weight=_fold("q_weight", q_weight, basis),
        k_weight=_fold("k_weight", k_weight, basis),
        q_bias=None if q_bias is None else _fold("q_bias", q_bias, basis),
        k_bias=None if k_bias is None else _fold("k_bias", k_bias, basis),
        frequencies=frequencies.expand(q_weight.shape[0] // rope.head_dim, -1).to(
            torch.promote_types(q_weight.dtype, torch.float32)
        ),
    )


def _fold(name: str, parameter: Tensor, basis: Float[Tensor, "heads head_dim head_dim"]) -> Tensor:
    """Return the weight or bias of a projection in the basis of each head."""
    needed, head_dim, _ = basis.shape
    heads, rest = divmod(parameter.shape[0], head_dim)
    if rest or needed not in (1, heads):
        raise InputError(
            f"{name} has {parameter.shape[0]} rows, but {needed} heads of {head_dim} need {needed * head_dim}"
        )
    by_head = parameter.detach().to(torch.float64).unflatten(0, (heads, head_dim))
    folded = torch.einsum("hij,hj...->hi...", basis.expand(heads, -1, -1), by_head)
    return folded.flatten(0, 1).to(parameter.dtype)


def _head_basis(rope: RotaryEncoding, layer: int) -> tuple[Tensor, Tensor]:
    """Return an orthogonal basis of rotated pairs, then fixed dimensions, for each head, and the frequencies."""
    generators = rope.skew_generators(layer)[0].to(torch.float64)  # [heads, blocks, b, b]
    dense = torch.stack([torch.block_diag(*head) for head in generators.unbind(0)])
    rest = rope.head_dim - dense.shape[-1]
    planes = rotation_planes(torch.nn.functional.pad(dense, (0, rest, 0, rest)))
    return planes.basis, planes.angles
