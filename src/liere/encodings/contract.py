"""What a transformer asks of a position encoding."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from liere.errors import InputError
from liere.shapes import Float

__all__ = ["PositionEncoding", "Rotations", "TransformerShape"]

Rotations = Tensor | Callable[[], Tensor] | None
"""What a layer gets."""


@dataclass(frozen=True)
class TransformerShape:
    """The dimensions of a transformer that a position encoding may depend on.

    Attributes:
        grid: Tokens on each axis at the training resolution, without prefix tokens.
        dim: Width of a token.
        num_heads: Attention heads of a layer.
        depth: Number of layers.
        num_prefix_tokens: Tokens without a position (CLS, registers) before the grid's.
    """

    grid: tuple[int, ...]
    dim: int
    num_heads: int
    depth: int
    num_prefix_tokens: int = 0

    def __post_init__(self) -> None:
        if self.dim % self.num_heads:
            raise InputError(f"dim={self.dim} is not divisible by heads={self.num_heads}: choose other heads")

    @property
    def ndim(self) -> int:
        """Number of position axes."""
        return len(self.grid)

    @property
    def head_dim(self) -> int:
        """Width of a head."""
        return self.dim // self.num_heads

    @property
    def num_patches(self) -> int:
        """Tokens of the grid."""
        return math.prod(self.grid)

    @property
    def num_tokens(self) -> int:
        """All tokens."""
        return self.num_prefix_tokens + self.num_patches


class PositionEncoding(nn.Module):
    """Base of all position encodings; by itself it encodes nothing.

    A transformer calls `embed` once, on its tokens, and `layer_rotations` once a forward pass, and hands each layer
    its own rotations. An encoding overrides one of the two, and `build`.
    """

    name: ClassVar[str]
    """What `create_model(encoding=...)` calls it."""
    has_coordinates: ClassVar[bool] = True
    """Whether it depends on the positions that it is given, so that moving them in training means something."""

    @classmethod
    def match(cls, name: str) -> dict[str, Any] | None:
        """Return the options that `name` implies if it means this encoding, else None."""
        return {} if name == cls.name else None

    @classmethod
    def build(cls, shape: TransformerShape) -> PositionEncoding:
        """Make the encoding for a transformer. Further keyword arguments are the encoding's options."""
        raise NotImplementedError

    def check_fit(self, shape: TransformerShape) -> None:
        """Raise `ValueError` if this encoding was not made for such a transformer."""

    def embed(
        self,
        tokens: Float[Tensor, "batch tokens dim"],
        positions: Float[Tensor, "positioned ndim"],
        grid: tuple[int, ...],
    ) -> Float[Tensor, "batch tokens dim"]:
        """Add position embeddings to the tokens, prefix tokens first, the grid's after them.

        Args:
            tokens: All tokens.
            positions: Positions of the last `len(positions)` tokens: those of the grid, and with
                `cls_position="center"` those of the prefix tokens before them.
            grid: Shape of the grid, which may differ from the one in training.
        """
        return tokens

    def layer_rotations(self, positions: Float[Tensor, "*batch tokens ndim"], depth: int) -> Iterator[Rotations]:
        """Yield for each layer the rotations `[*batch, heads, tokens, blocks, b, b]` of its queries and keys.

        They are taken to be rotations: of 2x2 matrices only the first column is read. They may be used again, so do not
        write to them. None rotates nothing. A function that returns the rotations is called in the forward pass and
        again in the backward pass, so that they need not be kept.
        """
        yield from itertools.repeat(None, depth)
