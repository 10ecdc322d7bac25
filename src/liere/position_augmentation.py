"""Random changes of positions in training, so that a model keeps what it learned where positions are new."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from liere.positions import check_positions
from liere.shapes import Float, Real

__all__ = ["PositionAugmentation", "augment_positions"]


@dataclass(frozen=True)
class PositionAugmentation:
    """How much positions change in training; see `augment_positions`.

    Raises:
        ValueError: If an amount is negative, not finite, or a factor below 1.
    """

    shift: float = 0.0
    stretch: float = 1.0
    zoom: float = 1.0
    noise: float = 0.0

    def __post_init__(self) -> None:
        for name, value, least in [
            ("shift", self.shift, 0),
            ("stretch", self.stretch, 1),
            ("zoom", self.zoom, 1),
            ("noise", self.noise, 0),
        ]:
            if not isinstance(value, int | float) or not math.isfinite(value) or value < least:
                raise ValueError(
                    f"{name} must be a finite number of at least {least}, got {value!r}: use {least} for none"
                )

    @property
    def active(self) -> dict[str, float]:
        """The amounts that change anything."""
        default = PositionAugmentation
        return {name: value for name, value in vars(self).items() if value != getattr(default, name)}

    def __bool__(self) -> bool:
        return bool(self.active)


def augment_positions(
    positions: Real[Tensor, "*batch tokens ndim"],
    *,
    shift: float = 0.0,
    stretch: float = 1.0,
    zoom: float = 1.0,
    noise: float = 0.0,
    generator: Generator | None = None,
    step: float | Sequence[float] | Tensor | None = None,
    extent: float | Sequence[float] | Tensor | None = None,
) -> Float[Tensor, "*batch tokens ndim"]:
    """Return positions as one random draw moves, stretches and disturbs them: `(p + noise) * stretch * zoom + shift`.

    Call it once per forward pass, in training only. All tokens given share the draw, but for the noise, which is each
    token's own. A learned rotation sees absolute coordinates unless its generators commute, and so does a CLS token
    without a position; random placement (`shift`) shows it coordinates that larger inputs will have, and teaches it
    not to depend on them.

    Args:
        positions: Positions of the tokens. Gradients flow to them.
        shift: Random placement: each axis is moved by its own offset, uniform in [0, shift] times the extent of the
            training grid, in whole token steps. Distances do not change.
        stretch: Each axis is multiplied by its own factor, log-uniform in [1/stretch, stretch].
        zoom: All axes are multiplied by the same factor, log-uniform in [1/zoom, zoom].
        noise: Each coordinate of each token is moved by its own offset, uniform in [-noise, noise] token steps.
        generator: Where random numbers come from; None for torch's global generator.
        step: Distance of neighboring tokens, for all axes or for each; 0 makes offsets continuous. By default the
            smallest distance of different coordinates on each axis, which is the spacing if positions are a grid.
        extent: Extent of the training grid, for all axes or for each; by default that of the positions.

    Returns:
        New positions, of the same shape, in the type of the positions or torch's default type for ints.

    Raises:
        ValueError: If an amount is negative or not finite, or a factor below 1.

    Example:
        >>> positions = grid_positions((9, 9))
        >>> moved = augment_positions(positions, shift=1.75, generator=torch.Generator().manual_seed(0))
        >>> (8 * (moved - positions)).unique(dim=0)
        tensor([[ 7., 11.]])
    """
    amounts = PositionAugmentation(shift, stretch, zoom, noise)
    if not isinstance(positions, Tensor) or positions.ndim == 0:
        raise TypeError(f"positions must be a tensor of shape [*batch, tokens, ndim], got {positions!r}")
    check_positions(positions, positions.shape[-1])
    if not positions.is_floating_point():
        positions = positions.to(torch.get_default_dtype())
    if not amounts or not positions.numel():
        return positions
    ndim, wide = positions.shape[-1], torch.promote_types(positions.dtype, torch.float32)
    source = positions.device if generator is None else generator.device

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, device=source, dtype=wide).to(positions.device)

    result = positions.to(wide)
    step, extent = _step_and_extent(result.detach(), step, extent)
    if noise:
        result = result + (2 * uniform(*positions.shape) - 1) * (noise * step)
    if stretch != 1 or zoom != 1:
        powers = math.log(stretch) * (2 * uniform(ndim) - 1) + math.log(zoom) * (2 * uniform(1) - 1)
        result = result * powers.exp()
    if shift:
        result = result + _offset(uniform(ndim), shift * extent, step)
    return result.to(positions.dtype)


def _offset(chance: Float[Tensor, "ndim"], reach: Float[Tensor, "ndim"], step: Float[Tensor, "ndim"]) -> Tensor:
    """Return an offset in [0, reach] for chances in [0, 1): in whole steps, or any where the step is 0."""
    steps = (reach / step + 1e-4).floor()  # 1.75 times eight steps are fourteen, whatever the rounding
    whole = (chance * (steps + 1)).floor().clamp(max=steps) * step
    return torch.where(step > 0, whole, chance * reach)


def _step_and_extent(positions: Tensor, step: Any, extent: Any) -> tuple[Tensor, Tensor]:
    """Return the distance of neighbors and the extent, `[ndim]`: as given, or else as the positions have them."""
    if step is not None and extent is not None:
        return _on_axes("step", step, positions), _on_axes("extent", extent, positions)
    points = positions.reshape(-1, positions.shape[-1])
    own = points.amax(0) - points.amin(0)
    wide = own if extent is None else _on_axes("extent", extent, positions)
    if step is not None:
        return _on_axes("step", step, positions), wide
    gaps = points.sort(dim=0).values.diff(dim=0)
    gaps = torch.where(gaps > 1e-5 * own, gaps, torch.inf)  # equal coordinates may differ by rounding
    smallest = torch.cat([gaps, own[None]]).amin(0)
    # Dividing the extent is more precise than the difference of two far coordinates.
    count = (own / smallest).round()
    return torch.where(own > 0, own / count, 1), wide


def _on_axes(name: str, value: Any, like: Tensor) -> Tensor:
    given = value if isinstance(value, Tensor) else torch.tensor(value)
    is_negative = given is not value and bool((given < 0).any())  # a look at a tensor would wait for its device
    if is_negative or given.ndim > 1 or (given.ndim == 1 and len(given) != like.shape[-1]):
        raise ValueError(
            f"{name} must be a number, or {like.shape[-1]} numbers, of at least 0, got {value!r}: give one per axis"
        )
    return given.to(like).expand(like.shape[-1])
