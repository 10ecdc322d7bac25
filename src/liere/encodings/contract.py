"""The interface between a transformer and its position encoding."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from liere.errors import InputError
from liere.shapes import Float

__all__ = ["PositionEncoding", "Rotations", "StreamedRotations", "TransformerShape"]


@dataclass(frozen=True)
class StreamedRotations:
    """Rotations `exp(sum_d p_d A_d)` of one layer that are never in memory as a whole.

    Attributes:
        positions: Positions `[*batch, tokens, ndim]`.
        generators: Generators `[ndim, heads, blocks, b, b]`, in the type of the positions.
    """

    positions: Tensor
    generators: Tensor


Rotations = Tensor | Callable[[], Tensor] | StreamedRotations | None
"""Rotations of one layer: a tensor, a function that makes it, what is needed to make a few at a time, or None."""


@dataclass(frozen=True)
class TransformerShape:
    """The dimensions of a transformer that a position encoding may depend on.

    Attributes:
        grid: Tokens on each axis at the training resolution, without prefix tokens.
        dim: Width of a token.
        num_heads: Number of attention heads per layer.
        depth: Number of layers.
        num_prefix_tokens: Number of tokens without a position (CLS, registers) before those of the grid.
    """

    grid: tuple[int, ...]
    dim: int
    num_heads: int
    depth: int
    num_prefix_tokens: int = 0

    def __post_init__(self) -> None:
        if self.dim % self.num_heads:
            raise InputError(f"dim={self.dim} is not divisible by heads={self.num_heads}: choose a divisor of dim")

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
        """Number of tokens in the grid."""
        return math.prod(self.grid)

    @property
    def num_tokens(self) -> int:
        """Total number of tokens."""
        return self.num_prefix_tokens + self.num_patches


class PositionEncoding(nn.Module):
    """Base class of all position encodings; by itself it encodes nothing.

    In each forward pass, a transformer calls `embed` once on its tokens and `layer_rotations` once, and passes each
    layer its own rotations. An encoding overrides one of the two, and `build`.
    """

    name: ClassVar[str]
    """Name of the encoding in `create_model(encoding=...)`."""
    has_coordinates: ClassVar[bool] = True
    """Whether it depends on the given positions, so that changing them in training has an effect."""

    @classmethod
    def match(cls, name: str) -> dict[str, Any] | None:
        """Return the options that `name` implies if it means this encoding, else None."""
        return {} if name == cls.name else None

    @classmethod
    def build(cls, shape: TransformerShape) -> PositionEncoding:
        """Create the encoding for a transformer. Additional keyword arguments are the encoding's options."""
        raise NotImplementedError

    def reset_parameters(self) -> None:
        """Initialize all parameters as the constructor does. An encoding with its own parameters overrides this.

        Raises:
            NotImplementedError: If it has parameters and does not override this.
        """
        if any(True for _ in self.parameters()):
            raise NotImplementedError(
                f"{type(self).__name__} has parameters, but no reset_parameters: define it to initialize them"
            )

    def check_fit(self, shape: TransformerShape) -> None:
        """Raise `ValueError` if this encoding does not match the dimensions of a transformer."""

    def embed(
        self,
        tokens: Float[Tensor, "batch tokens dim"],
        positions: Float[Tensor, "*examples positioned ndim"],
        grid: tuple[int, ...],
    ) -> Float[Tensor, "batch tokens dim"]:
        """Return the tokens with position embeddings added.

        Args:
            tokens: All tokens: prefix tokens first, then those of the grid.
            positions: Positions of the last `positions.shape[-2]` tokens: those of the grid, and with
                `cls_position="center"` those of the prefix tokens before them. They have a batch dimension if each
                example has its own positions.
            grid: Shape of the grid, which may differ from the training grid.
        """
        return tokens

    def layer_rotations(self, positions: Float[Tensor, "*batch tokens ndim"], depth: int) -> Iterator[Rotations]:
        """Yield the rotations `[*batch, heads, tokens, blocks, b, b]` of the queries and keys of each layer.

        They are assumed to be rotations: only the first column of 2x2 matrices is read. They may be reused, so do not
        write to them. None means no rotation. A function that returns the rotations is called in the forward pass and
        again in the backward pass, so that they need not be stored. `StreamedRotations` are made while they are
        applied.
        """
        yield from itertools.repeat(None, depth)
