"""Commuting generators inside larger blocks: where a RoPE starts from, and learning can leave."""

from __future__ import annotations

import torch
from torch import Tensor

from liere.encodings.liere import LieRE
from liere.errors import InputError, InputTypeError, whole_number
from liere.generators import skew_from_upper
from liere.shapes import Float

__all__ = ["set_planes", "widen_encoding"]


def set_planes(encoding: LieRE, frequencies: Float[Tensor, "layers ndim heads planes"]) -> None:
    """Make an encoding the RoPE of these frequencies, in place.

    Plane `i`, dimensions `2i` and `2i + 1` of a head, turns by `[[cos, -sin], [sin, cos]]` of the angle
    `sum_d p_d frequencies[d, i]`. All other entries of the generators are 0.

    Args:
        encoding: Encoding whose blocks hold whole planes and cover the head.
        frequencies: Radians per unit of position; layers or heads may be 1, which serves all.

    Raises:
        ValueError: If a plane would be in two blocks or in none, or if frequencies differ between layers or heads that
            share generators.

    Example:
        >>> encoding = LieRE(1, 4, block_size=4)
        >>> set_planes(encoding, torch.tensor([1.0, 0.1])[None, None, None])
        >>> encoding.skew_generators()[0, 0, 0].detach()
        tensor([[ 0.0000, -1.0000,  0.0000,  0.0000],
                [ 1.0000,  0.0000,  0.0000,  0.0000],
                [ 0.0000,  0.0000,  0.0000, -0.1000],
                [ 0.0000,  0.0000,  0.1000,  0.0000]])
    """
    b, head_dim = encoding.block_size, encoding.head_dim
    if b % 2 or head_dim % b:
        fits = [size for size in range(2, head_dim + 1, 2) if head_dim % size == 0]
        near = min(fits, key=lambda size: abs(size - b), default=2)
        raise InputError(
            f"blocks of {b} do not hold the planes of a head of {head_dim} dimensions: use an even block size that "
            f"divides it, like 'liere{near}'"
        )
    layers, _, heads, planes = frequencies.shape
    if 2 * planes != head_dim:
        raise InputError(f"frequencies of {planes} planes do not fit a head of {head_dim} dimensions")
    for name, given, own in [
        ("layers", layers, encoding.generators.shape[0]),
        ("heads", heads, encoding.generators.shape[2]),
    ]:
        if given not in (1, own):
            raise InputError(
                f"frequencies differ between {given} {name}, but the encoding has generators for {own}: "
                f"build it without share_{name}"
            )
    upper = torch.zeros_like(encoding.generators)
    row, column = torch.triu_indices(b, b, offset=1)
    inside = ((row % 2 == 0) & (column == row + 1)).nonzero().flatten()
    upper[..., inside] = -frequencies.unflatten(-1, (encoding.num_blocks, b // 2)).to(upper)
    with torch.no_grad():
        encoding.generators.copy_(upper)


def widen_encoding(encoding: LieRE, block_size: int) -> LieRE:
    """Return an encoding with larger blocks and the same rotations.

    Each new block holds neighboring old ones on its diagonal, and zeros elsewhere.

    Args:
        encoding: An encoding.
        block_size: A multiple of its block size that divides the rotated part of a head.

    Raises:
        TypeError: If `encoding` is not a LieRE encoding.
        ValueError: If the blocks do not fit into blocks of that size.

    Example:
        >>> rope = LieRE(2, 16, block_size=2)
        >>> wide = widen_encoding(rope, 8)
        >>> wide.generators.shape, wide.generators.count_nonzero().item() == rope.generators.count_nonzero().item()
        (torch.Size([1, 2, 1, 2, 28]), True)
    """
    if not isinstance(encoding, LieRE):
        raise InputTypeError(f"only LieRE encodings have blocks to widen, got {type(encoding).__name__}")
    b, wide = encoding.block_size, whole_number("block", block_size)
    rotated = b * encoding.num_blocks
    if wide < b or wide % b or rotated % wide:
        fits = ", ".join(str(size) for size in range(b, rotated + 1, b) if rotated % size == 0)
        raise InputError(f"block must be a multiple of {b} that divides {rotated}, got {wide}: choose from {fits}")
    upper = encoding.generators.detach()
    blocks = skew_from_upper(upper, b).unflatten(-3, (rotated // wide, wide // b))  # [..., new blocks, old ones, b, b]
    # Blocks on a diagonal: [..., old, old, b, b] -> [..., old, b, old, b].
    matrices = torch.diag_embed(blocks.movedim(-3, -1), dim1=-4, dim2=-3).transpose(-3, -2)
    row, column = torch.triu_indices(wide, wide, offset=1)
    widened = LieRE(
        encoding.ndim,
        encoding.head_dim,
        num_heads=encoding.num_heads,
        depth=encoding.depth,
        block_size=wide,
        init_scale=encoding.init_scale,
        share_heads=encoding.share_heads,
        share_layers=encoding.share_layers,
        recompute=encoding.recompute,
        device=upper.device,
        dtype=upper.dtype,
    )
    with torch.no_grad():
        widened.generators.copy_(matrices.reshape(*matrices.shape[:-4], wide, wide)[..., row, column])
    widened.generators.requires_grad_(encoding.generators.requires_grad)
    widened.train(encoding.training)
    return widened
