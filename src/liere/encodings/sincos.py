"""Fixed sine and cosine positions for any number of axes, added before the first layer."""

from __future__ import annotations

import torch
from torch import Tensor

from liere.devices import send
from liere.encodings.contract import PositionEncoding, TransformerShape
from liere.errors import InputError, check_amount
from liere.shapes import Float

__all__ = ["SinCos"]


class SinCos(PositionEncoding):
    """Add sines and cosines of each coordinate, `dim // (2 * ndim)` frequencies per axis; prefix tokens get none.

    The frequencies decrease from 1 toward 1 / temperature for coordinates in token steps, as in MAE.

    Args:
        grid: Tokens on each axis at the training resolution.
        dim: Width of a token; the remaining `dim % (2 * ndim)` dimensions are unchanged.
        temperature: Ratio that sets the range of the frequencies.

    Example:
        >>> from liere import grid_positions
        >>> SinCos((2, 2), 8).embed(torch.zeros(1, 4, 8), grid_positions((2, 2)), grid=(2, 2))[0, 3]
        tensor([0.8415, 0.0100, 0.5403, 0.9999, 0.8415, 0.0100, 0.5403, 0.9999])
    """

    name = "sincos"

    def __init__(self, grid: tuple[int, ...], dim: int, *, temperature: float = 10_000.0) -> None:
        super().__init__()
        if dim < 2 * len(grid):
            raise InputError(f"dim must be at least {2 * len(grid)} for {len(grid)} axes, got {dim}")
        check_amount("temperature", temperature)
        if temperature == 0:
            raise InputError(f"temperature must be positive, got {temperature}")
        self.grid = tuple(grid)
        self.dim = dim
        self.temperature = temperature

    @classmethod
    def build(cls, shape: TransformerShape, *, temperature: float = 10_000.0) -> PositionEncoding:
        """Create the encoding for a transformer."""
        return cls(shape.grid, shape.dim, temperature=temperature)

    def check_fit(self, shape: TransformerShape) -> None:
        """Raise `ValueError` if the grid or the width differs."""
        if (self.grid, self.dim) != (shape.grid, shape.dim):
            raise InputError(
                f"encoding was built for grid {self.grid} and dim {self.dim}, but the model has {shape.grid} "
                f"and {shape.dim}: build it with the values of the model"
            )

    def embed(
        self,
        tokens: Float[Tensor, "batch tokens dim"],
        positions: Float[Tensor, "*examples patches ndim"],
        grid: tuple[int, ...],
    ) -> Float[Tensor, "batch tokens dim"]:
        """Add sines and cosines to the tokens that have positions."""
        count = self.dim // (2 * len(self.grid))
        steps = torch.tensor([max(n - 1, 1) for n in self.grid], dtype=positions.dtype, device="cpu")
        exponents = torch.arange(count, device=positions.device, dtype=positions.dtype) / count
        angles = (positions * send(steps, positions.device))[..., None] * self.temperature**-exponents
        waves = torch.cat([angles.sin(), angles.cos()], dim=-1).flatten(-2)
        prefix = tokens.shape[-2] - waves.shape[-2]
        waves = torch.nn.functional.pad(waves, (0, self.dim - waves.shape[-1], prefix, 0))
        return tokens + waves.to(tokens.dtype)

    def extra_repr(self) -> str:
        """Show the dimensions."""
        return f"grid={self.grid}, dim={self.dim}, temperature={self.temperature}"
