"""Learned absolute positions: one vector per token, added before the first layer."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from liere.encodings.contract import PositionEncoding, TransformerShape
from liere.errors import InputError, check_amount
from liere.shapes import Float
from liere.sharding import gathered

__all__ = ["Absolute"]

INTERPOLATION = {1: "linear", 2: "bicubic", 3: "trilinear"}


class Absolute(PositionEncoding):
    """Add a learned vector to every token, including prefix tokens; interpolate the vectors for other grids.

    Args:
        grid: Tokens on each axis at the training resolution.
        dim: Width of a token.
        num_prefix_tokens: Number of tokens before those of the grid; they have their own vectors, as in DeiT.
        init_std: Standard deviation of the initial vectors: 0.02 in timm, 1 in the published LieRE code.

    Example:
        >>> encoding = Absolute((2, 2), 8, num_prefix_tokens=1)
        >>> encoding.embed(torch.zeros(1, 10, 8), torch.zeros(9, 2), grid=(3, 3)).shape
        torch.Size([1, 10, 8])
    """

    name = "absolute"
    has_coordinates = False

    def __init__(self, grid: tuple[int, ...], dim: int, *, num_prefix_tokens: int = 0, init_std: float = 0.02) -> None:
        super().__init__()
        check_amount("init_std", init_std)
        self.grid = tuple(grid)
        self.num_prefix_tokens = num_prefix_tokens
        self.init_std = float(init_std)
        self.embedding = nn.Parameter(torch.empty(1, num_prefix_tokens + math.prod(grid), dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize the vectors."""
        nn.init.normal_(self.embedding, std=self.init_std)

    @classmethod
    def build(cls, shape: TransformerShape, *, init_std: float = 0.02) -> PositionEncoding:
        """Create the encoding for a transformer."""
        return cls(shape.grid, shape.dim, num_prefix_tokens=shape.num_prefix_tokens, init_std=init_std)

    def check_fit(self, shape: TransformerShape) -> None:
        """Raise `ValueError` if the grid, the width or the number of prefix tokens differs."""
        mine = self.grid, self.num_prefix_tokens, self.embedding.shape[-1]
        theirs = shape.grid, shape.num_prefix_tokens, shape.dim
        if mine != theirs:
            raise InputError(
                f"encoding was built for (grid, num_prefix_tokens, dim) = {mine}, but the model has {theirs}: "
                "build it with the values of the model"
            )

    def embed(
        self,
        tokens: Float[Tensor, "batch tokens dim"],
        positions: Float[Tensor, "*examples patches ndim"],
        grid: tuple[int, ...],
    ) -> Float[Tensor, "batch tokens dim"]:
        """Add the vectors to the tokens, interpolated if the grid differs from the training grid."""
        return tokens + self._resized(tuple(grid)).to(tokens.dtype)

    def _resized(self, grid: tuple[int, ...]) -> Tensor:
        embedding = gathered(self.embedding)
        if grid == self.grid:
            return embedding
        if len(grid) not in INTERPOLATION:
            raise InputError(
                f"absolute positions of {len(grid)} axes cannot be interpolated from {self.grid} to {grid}: "
                "use inputs of the training size, or a rotary encoding"
            )
        prefix, cells = embedding.split([self.num_prefix_tokens, math.prod(self.grid)], dim=1)
        cells = cells.mT.unflatten(-1, self.grid)
        cells = F.interpolate(cells, size=grid, mode=INTERPOLATION[len(grid)], align_corners=False)
        return torch.cat([prefix, cells.flatten(2).mT], dim=1)

    def extra_repr(self) -> str:
        """Show the dimensions."""
        return f"grid={self.grid}, dim={self.embedding.shape[-1]}, init_std={self.init_std}"
