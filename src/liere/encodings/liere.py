"""LieRE: learned skew-symmetric generators, block-diagonal or dense."""

from __future__ import annotations

import math
import re
import warnings
from typing import Any

import torch
from torch import Tensor, nn

from liere.encodings.contract import PositionEncoding, TransformerShape
from liere.encodings.rotary import RotaryEncoding
from liere.errors import InputError, check_amount, whole_number
from liere.generators import init_upper_, skew_from_upper
from liere.shapes import Float
from liere.sharding import gathered

__all__ = ["LieRE"]


class LieRE(RotaryEncoding):
    """Rotate queries and keys by `R(p) = exp(sum_d p_d A_d)` with learned skew-symmetric `A_d`.

    Each head of each layer has its own generators unless `share_heads` or `share_layers` is set. Only the entries above
    the diagonal are parameters: `generators` has shape `[layers, ndim, heads, blocks, b (b - 1) / 2]`, where `layers`
    or `heads` is 1 if shared.

    Args:
        ndim: Number of position axes.
        head_dim: Width of a head.
        num_heads: Number of heads per layer. With 1, any number of heads can share the rotation of a token.
        depth: Number of layers that use this module; `layer=` selects one.
        block_size: Size of the diagonal blocks of the generators, 2 to `head_dim`. 2 is RoPE-Mixed, `head_dim` is
            dense. Dimensions that do not fill a block are not rotated, with a warning.
        init_scale: Initial entries are uniform in [0, init_scale).
        share_heads: Whether all heads of a layer have the same generators.
        share_layers: Whether all layers have the same generators.
        recompute: Whether a transformer recomputes the rotations in its backward pass instead of storing them, which
            takes less memory and more time.
        device: Device of the parameters.
        dtype: Data type of the parameters; rotations are computed in fp32 or higher.

    Raises:
        ValueError: If `block_size` is below 2 or above `head_dim`, or a dimension is not positive.

    Example:
        >>> from liere import grid_positions
        >>> rope = LieRE(2, 64, num_heads=6, block_size=8)
        >>> q, k = torch.randn(2, 1, 6, 1 + 49, 64).unbind()
        >>> q, k = rope(q, k, grid_positions((7, 7)), num_prefix_tokens=1)
        >>> torch.nn.functional.scaled_dot_product_attention(q, k, torch.randn(1, 6, 50, 64)).shape
        torch.Size([1, 6, 50, 64])
    """

    name = "liere<b>"

    def __init__(
        self,
        ndim: int,
        head_dim: int,
        *,
        num_heads: int = 1,
        depth: int = 1,
        block_size: int = 8,
        init_scale: float = 2 * math.pi,
        share_heads: bool = False,
        share_layers: bool = False,
        recompute: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        check_amount("init_scale", init_scale)
        block_size = whole_number("block_size", block_size)
        if not 2 <= block_size <= head_dim:
            raise InputError(
                f"block_size must be between 2 and head_dim={head_dim}, got {block_size}: "
                "use 2 for RoPE-Mixed, head_dim for dense LieRE"
            )
        super().__init__(
            ndim,
            head_dim,
            block_size=block_size,
            num_blocks=head_dim // block_size,
            num_heads=num_heads,
            depth=depth,
            share_heads=share_heads,
            share_layers=share_layers,
            recompute=recompute,
        )
        if rest := head_dim % block_size:
            nearest = min(_divisors(head_dim), key=lambda size: abs(size - block_size))
            warnings.warn(
                f"head_dim={head_dim} is not a multiple of block_size={block_size}: the last {rest} dimensions "
                f"of each head are not rotated; to rotate all, use a divisor of head_dim, for example {nearest}",
                stacklevel=2,
            )
        self.init_scale = float(init_scale)
        shape = (
            1 if share_layers else depth,
            ndim,
            1 if share_heads else num_heads,
            self.num_blocks,
            block_size * (block_size - 1) // 2,
        )
        self.generators = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize the generators, uniform in [0, init_scale)."""
        init_upper_(self.generators, self.init_scale)

    @classmethod
    def match(cls, name: str) -> dict[str, Any] | None:
        """Match `"liere"` (dense) and names with a block size, such as `"liere8"` and `"liere64"`."""
        found = re.fullmatch(r"liere([0-9]+)?", name)
        if found is None:
            return None
        return {"block_size": int(found[1])} if found[1] else {}

    @classmethod
    def build(
        cls,
        shape: TransformerShape,
        *,
        block_size: int | None = None,
        init_scale: float = 2 * math.pi,
        share_heads: bool = False,
        share_layers: bool = False,
        recompute: bool = False,
    ) -> PositionEncoding:
        """Create the encoding for a transformer; without a block size it is dense."""
        return cls(
            shape.ndim,
            shape.head_dim,
            num_heads=shape.num_heads,
            depth=shape.depth,
            block_size=shape.head_dim if block_size is None else block_size,
            init_scale=init_scale,
            share_heads=share_heads,
            share_layers=share_layers,
            recompute=recompute,
        )

    def skew_generators(self, layer: int = 0) -> Float[Tensor, "ndim heads blocks b b"]:
        """Return the generators of a layer as skew-symmetric matrices, in fp32 or higher."""
        if not 0 <= layer < self.depth and not self.share_layers:
            remedy = "the first layer is 0" if layer < 0 else f"build the encoding with depth={layer + 1} or more"
            raise InputError(f"layer must be between 0 and {self.depth - 1}, got {layer}: {remedy}")
        upper = gathered(self.generators)[0 if self.share_layers else layer]
        return skew_from_upper(upper if upper.dtype == torch.float64 else upper.float(), self.block_size)

    def extra_repr(self) -> str:
        """Show the dimensions."""
        return f"{super().extra_repr()}, init_scale={self.init_scale:.4g}"


def _divisors(number: int) -> list[int]:
    return [size for size in range(2, number + 1) if number % size == 0]
