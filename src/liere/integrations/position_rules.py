"""Where the patches of a converted model are: liere's own rule, or the one of the RoPE that was replaced."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from liere.positions import grid_positions
from liere.shapes import Float, Real
from liere.tracing import values_are_visible

__all__ = ["GridRule", "PositionMemory", "PositionRule", "RopeRule"]


class PositionRule:
    """Base of the rules. Rows come before columns, and frames of a video before both."""

    def of_grid(self, grid: Sequence[Any], device: torch.device, dtype: torch.dtype) -> Float[Tensor, "tokens axes"]:
        """Return the positions of all patches of a grid, such as (rows, columns), in the order of the tokens."""
        raise NotImplementedError

    def of_patches(
        self, coordinates: Real[Tensor, "batch tokens axes"], dtype: torch.dtype
    ) -> Float[Tensor, "batch tokens axes"]:
        """Return the positions of patches of which the row and column are given, as in NaFlex batches.

        The grid of an image ends where its last row and column are.
        """
        raise NotImplementedError

    def augment(self, positions: Float[Tensor, "*batch tokens axes"]) -> Float[Tensor, "*batch tokens axes"]:
        """Return positions for a forward pass of training."""
        return positions


@dataclass(frozen=True)
class GridRule(PositionRule):
    """The rule of `liere.grid_positions`: the training grid spans [0, 1], and larger grids reach further.

    Attributes:
        reference: The training grid, such as (rows, columns).
    """

    reference: tuple[int, ...]

    def of_grid(self, grid: Sequence[Any], device: torch.device, dtype: torch.dtype) -> Float[Tensor, "tokens axes"]:
        """Return the positions of all patches of a grid."""
        return grid_positions(tuple(grid), reference_shape=self.reference, device=device, dtype=dtype)

    def of_patches(
        self, coordinates: Real[Tensor, "batch tokens axes"], dtype: torch.dtype
    ) -> Float[Tensor, "batch tokens axes"]:
        """Return the positions of single patches."""
        axes = zip(coordinates.to(dtype).unbind(-1), self.reference, strict=True)
        return torch.stack([cells / max(size - 1, 1) for cells, size in axes], dim=-1)


@dataclass(frozen=True)
class RopeRule(PositionRule):
    """The rule of a RoPE of timm or transformers, at every resolution. Positions have two axes.

    Attributes:
        kind: `"index"` counts patches from 0; `"pixel"` spans [-1, 1] from the first patch to the last; `"centered"`
            spans [-1, 1] from edge to edge, as in DINOv3.
        offset: Added to the index of a patch.
        reference: Grid of the pretraining, onto which grids of other sizes are stretched (EVA-02); None does not.
        normalize: Which size divides the coordinates of `"centered"`: `"separate"`, `"min"` or `"max"`.
        shift: In training, each axis moves by its own offset, uniform in [-shift, shift]. None moves nothing.
        jitter: In training, each axis is multiplied by its own factor, log-uniform in [1/jitter, jitter].
        rescale: In training, both axes are multiplied by the same factor, log-uniform in [1/rescale, rescale].
        columns_first: Whether the original draws the random numbers of the columns before those of the rows.
    """

    kind: str = "index"
    offset: float = 0.0
    reference: tuple[int, int] | None = None
    normalize: str = "separate"
    shift: float | None = None
    jitter: float | None = None
    rescale: float | None = None
    columns_first: bool = False

    def of_grid(self, grid: Sequence[Any], device: torch.device, dtype: torch.dtype) -> Float[Tensor, "tokens axes"]:
        """Return the positions of all patches of a grid."""
        cells = [torch.arange(size, device=device, dtype=dtype) for size in grid]
        axes = self._place(cells, list(grid), {"min": min(*grid), "max": max(*grid)})
        return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).flatten(0, -2)

    def of_patches(
        self, coordinates: Real[Tensor, "batch tokens axes"], dtype: torch.dtype
    ) -> Float[Tensor, "batch tokens axes"]:
        """Return the positions of single patches."""
        cells = coordinates.to(dtype)
        sizes = cells.amax(dim=-2, keepdim=True) + 1  # [batch, 1, 2]
        ends = {"min": sizes.amin(-1), "max": sizes.amax(-1)}
        return torch.stack(self._place(list(cells.unbind(-1)), list(sizes.unbind(-1)), ends), dim=-1)

    def augment(self, positions: Float[Tensor, "*batch tokens axes"]) -> Float[Tensor, "*batch tokens axes"]:
        """Draw as the original does: the same numbers, in the same order."""

        def draw(count: int, reach: float) -> Tensor:
            numbers = torch.empty(count, device=positions.device, dtype=positions.dtype).uniform_(-reach, reach)
            return numbers.flip(0) if self.columns_first else numbers

        if self.shift is not None:
            positions = positions + draw(2, self.shift)
        if self.jitter is not None:
            positions = positions * draw(2, math.log(self.jitter)).exp()
        if self.rescale is not None:
            positions = positions * draw(1, math.log(self.rescale)).exp()
        return positions

    def _place(self, cells: list[Tensor], sizes: list[Any], ends: dict[str, Any]) -> list[Tensor]:
        """Return coordinates on each axis from the indices of the patches and the sizes of the grid."""
        placed = []
        for axis, (cell, size) in enumerate(zip(cells, sizes, strict=True)):
            if self.kind == "pixel":
                at = 2 * cell / _at_least_one(size - 1) - 1
            elif self.kind == "centered":
                at = (cell + 0.5 + self.offset) / ends.get(self.normalize, size)
            else:
                at = cell + self.offset
            if self.reference is not None:
                at = at / size * self.reference[axis]
            placed.append(2 * at - 1 if self.kind == "centered" else at)
        return placed


def _at_least_one(size: Any) -> Any:
    return size.clamp(min=1) if isinstance(size, Tensor) else max(size, 1)


class PositionMemory:
    """The positions of the last grid: the same tensor as before tells the encoding that nothing has changed.

    A copy of the model, or one that was saved and loaded, begins with an empty memory.
    """

    def __init__(self) -> None:
        self._known: tuple[Any, Tensor, int] | None = None  # replaced, never changed: other threads may be reading

    def of_grid(
        self, rule: PositionRule, grid: Sequence[Any], device: torch.device, dtype: torch.dtype
    ) -> Float[Tensor, "tokens axes"]:
        """Return what the rule says of a grid."""
        if torch.compiler.is_compiling():
            return rule.of_grid(grid, device, dtype)
        key = rule, tuple(grid), device, dtype
        known = self._known
        if known is not None and known[0] == key and known[1]._version == known[2]:
            return known[1]
        with torch.inference_mode(False):  # what is kept serves training, too
            positions = rule.of_grid(grid, device, dtype)
        if values_are_visible(positions):
            self._known = key, positions, positions._version
        return positions

    def __deepcopy__(self, memo: dict[int, object]) -> PositionMemory:
        return PositionMemory()

    def __reduce__(self) -> tuple[type[PositionMemory], tuple[()]]:
        return PositionMemory, ()
