"""VisionLLaMA's axial RoPE: each pair of dimensions rotates with one axis, at a fixed frequency."""

from __future__ import annotations

import torch
from torch import Tensor

from liere.encodings.contract import PositionEncoding, TransformerShape
from liere.encodings.rotary import RotaryEncoding
from liere.errors import InputError
from liere.generators import skew_from_upper
from liere.shapes import Float

__all__ = ["VisionLLaMA"]


class VisionLLaMA(RotaryEncoding):
    """Rotate `head_dim // (2 * ndim)` pairs of dimensions per axis, without learned parameters.

    The frequencies are those of the published LieRE code: from 1 to exp(-4) for positions in [0, 1].

    Args:
        ndim: Number of position axes.
        head_dim: Width of a head; dimensions that do not fill a pair on each axis are not rotated.
        num_heads: Number of heads per layer.
        depth: Number of layers.

    Example:
        >>> VisionLLaMA(2, 64).rotations(torch.zeros(9, 2)).shape
        torch.Size([1, 9, 32, 2, 2])
    """

    name = "visionllama"

    def __init__(self, ndim: int, head_dim: int, *, num_heads: int = 1, depth: int = 1) -> None:
        if ndim < 1:
            raise InputError(f"ndim must be at least 1, got {ndim}")
        pairs = head_dim // (2 * ndim)
        if pairs < 1:
            raise InputError(f"head_dim must be at least {2 * ndim} for {ndim} axes, got {head_dim}: use fewer heads")
        super().__init__(
            ndim,
            head_dim,
            block_size=2,
            num_blocks=ndim * pairs,
            num_heads=num_heads,
            depth=depth,
            share_heads=True,
            share_layers=True,
        )

    @classmethod
    def build(cls, shape: TransformerShape) -> PositionEncoding:
        """Create the encoding for a transformer; it has no options."""
        return cls(shape.ndim, shape.head_dim, num_heads=shape.num_heads, depth=shape.depth)

    def skew_generators(self, layer: int = 0) -> Float[Tensor, "ndim 1 blocks 2 2"]:
        """Return the fixed generators, which are the same in every layer."""
        frequencies = torch.exp(-4 * torch.linspace(0, 1, self.num_blocks // self.ndim, dtype=torch.float64))
        # R = [[cos, -sin], [sin, cos]] has a negative upper entry.
        upper = -torch.block_diag(*[frequencies] * self.ndim)
        return skew_from_upper(upper[:, None, :, None], 2)
