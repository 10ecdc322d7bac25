"""Random changes of positions during training, so that a model generalizes to positions it was not trained on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from liere.devices import send
from liere.errors import InputError, InputTypeError
from liere.positions import check_positions
from liere.shapes import Float, Real
from liere.tracing import values_are_at_hand

__all__ = ["GREATEST_AMOUNT", "PositionAugmentation", "augment_positions"]

GREATEST_AMOUNT = 1e6
"""Largest amount of any change; beyond it, rotations lose all precision."""


@dataclass(frozen=True)
class PositionAugmentation:
    """How much positions change during training; see `augment_positions`.

    Raises:
        ValueError: If an amount is negative or not finite, or a factor is below 1.
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
            if not _is_amount(value, least):
                raise InputError(f"{name} must be a finite number >= {least}, got {value!r}: use {least} for no change")
            if value > GREATEST_AMOUNT:
                raise InputError(
                    f"{name} must be at most {GREATEST_AMOUNT:,.0f}, got {value!r}: beyond that, rotations "
                    "lose all precision"
                )

    @property
    def active(self) -> dict[str, float]:
        """The amounts that differ from their defaults."""
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
    """Return randomly moved, stretched and perturbed positions: `(p + noise) * stretch * zoom + shift`.

    Call it once per forward pass, in training only. All given tokens share one random draw, except for the noise, which
    is drawn per token. Attention depends on absolute coordinates if the generators do not commute, or if there is a CLS
    token without a position. Random placement (`shift`) then exposes the model to the coordinates of larger inputs, and
    trains it not to depend on them.

    Args:
        positions: Positions of the tokens. Gradients flow through them.
        shift: Random placement: each axis is moved by its own offset, uniform in [0, shift] times the extent of the
            training grid, in whole token steps. Distances between tokens do not change.
        stretch: Each axis is multiplied by its own factor, log-uniform in [1/stretch, stretch].
        zoom: All axes are multiplied by the same factor, log-uniform in [1/zoom, zoom].
        noise: Each coordinate of each token is moved by its own offset, uniform in [-noise, noise] token steps.
        generator: Random number generator; by default torch's global generator.
        step: Distance between neighboring tokens, for all axes or per axis; 0 makes offsets continuous. By default the
            smallest distance between different coordinates on each axis, which is the spacing if positions are a grid.
        extent: Extent of the training grid, for all axes or per axis; by default that of the positions.

    Returns:
        New positions of the same shape, in the dtype of the positions, or torch's default dtype for ints.

    Raises:
        TypeError: If positions are not a tensor of real numbers.
        ValueError: If an amount, a step or an extent is negative or not finite, a factor is below 1, or a shape is
            wrong.

    Example:
        >>> from liere import grid_positions
        >>> positions = grid_positions((9, 9))
        >>> moved = augment_positions(positions, shift=1.75, generator=torch.Generator().manual_seed(0))
        >>> (8 * (moved - positions)).unique(dim=0)
        tensor([[ 7., 11.]])
    """
    amounts = PositionAugmentation(shift, stretch, zoom, noise)
    _check_arguments(positions, generator)
    if not positions.is_floating_point():
        positions = positions.to(torch.get_default_dtype())
    if not amounts or not positions.numel():
        return positions
    result = positions.to(torch.promote_types(positions.dtype, torch.float32))
    step, extent = _step_and_extent(result.detach(), step, extent, torch.finfo(positions.dtype).eps)
    return _draw(result, amounts, step, extent, generator).to(positions.dtype)


def _check_arguments(positions: Any, generator: Any) -> None:
    if not isinstance(positions, Tensor):
        raise InputTypeError(
            f"positions must be a tensor of shape [*batch, tokens, ndim], got {type(positions).__name__}: "
            "convert it with torch.as_tensor"
        )
    if positions.ndim < 2:
        raise InputError(
            f"positions has shape {list(positions.shape)}, but must be [*batch, tokens, ndim]: for one axis, "
            "pass positions[:, None]"
        )
    check_positions(positions, positions.shape[-1], allow_half=True)
    if generator is not None and not isinstance(generator, torch.Generator):
        raise InputTypeError(f"generator must be a torch.Generator, got {generator!r}: make one with torch.Generator()")


def _draw(
    positions: Tensor, amounts: PositionAugmentation, step: Tensor, extent: Tensor, generator: Generator | None
) -> Tensor:
    """Return positions after one draw; amounts without an effect consume no random numbers."""
    ndim, source = positions.shape[-1], positions.device if generator is None else generator.device

    def uniform(*shape: int) -> Tensor:
        return send(torch.rand(shape, generator=generator, device=source, dtype=positions.dtype), positions.device)

    if amounts.noise:
        positions = positions + (2 * uniform(*positions.shape) - 1) * (amounts.noise * step)
    if amounts.stretch != 1 or amounts.zoom != 1:
        powers = math.log(amounts.stretch) * (2 * uniform(ndim) - 1) + math.log(amounts.zoom) * (2 * uniform(1) - 1)
        positions = positions * powers.exp()
    if amounts.shift:
        positions = positions + _offset(uniform(ndim), amounts.shift * extent, step)
    return positions


def _offset(chance: Float[Tensor, "ndim"], reach: Float[Tensor, "ndim"], step: Float[Tensor, "ndim"]) -> Tensor:
    """Return an offset in [0, reach] for samples in [0, 1): in whole steps, or continuous if the step is 0."""
    steps = (reach / step + 1e-4).floor()  # 1.75 times eight steps must be fourteen in spite of rounding
    whole = (chance * (steps + 1)).floor().clamp(max=steps) * step
    return torch.where(step > 0, whole, chance * reach)


def _step_and_extent(positions: Tensor, step: Any, extent: Any, eps: float) -> tuple[Tensor, Tensor]:
    """Return the distance between neighbors and the extent on each axis, `[ndim]`, as given or as in the positions.

    Positions have relative rounding errors of up to `eps`.
    """
    if step is not None and extent is not None:
        return _on_axes("step", step, positions), _on_axes("extent", extent, positions)
    points = positions.reshape(-1, positions.shape[-1])
    own = points.amax(0) - points.amin(0)
    wide = own if extent is None else _on_axes("extent", extent, positions)
    if step is not None:
        return _on_axes("step", step, positions), wide
    gaps = points.sort(dim=0).values.diff(dim=0)
    different = gaps > 1e-5 * own  # equal coordinates may differ by rounding
    smallest = torch.cat([torch.where(different, gaps, torch.inf), own[None]]).amin(0)
    # Dividing the extent is more precise than the difference of two large coordinates. A grid may have holes.
    rounding = 2 * eps * points.abs().amax(0)
    even, whole = own / different.sum(0), own / (own / smallest).round()
    spacing = torch.where((whole - smallest).abs() <= rounding, whole, smallest)
    spacing = torch.where(even - smallest <= rounding, even, spacing)
    return torch.where(own > 0, spacing, 1), wide


def _on_axes(name: str, value: Any, like: Tensor) -> Tensor:
    ndim = like.shape[-1]
    if isinstance(value, Tensor):
        fits = value.ndim == 0 or value.shape == (ndim,)
        if fits and values_are_at_hand(value):  # elsewhere the check would synchronize
            fits = bool((value.isfinite() & (value >= 0)).all())
    else:
        numbers = list(value) if isinstance(value, Sequence) else [value] * ndim
        fits = len(numbers) == ndim and all(_is_amount(number, 0) for number in numbers)
    if not fits:
        raise InputError(
            f"{name} must be a finite number >= 0, or {ndim} of them, got {value!r}: give one for all axes, "
            "or one per axis"
        )
    return send(torch.as_tensor(value), like.device, like.dtype).expand(ndim)


def _is_amount(value: Any, least: int) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and least <= value < math.inf  # also for an int too large for a float
