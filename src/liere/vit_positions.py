"""Positions of the tokens of a vision transformer: those of its grid, scaled by a spacing, or given ones."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from liere.devices import send
from liere.encodings import PositionEncoding, RotaryEncoding
from liere.errors import InputError
from liere.position_augmentation import PositionAugmentation
from liere.positions import Policy, check_positions, grid_positions, grid_spacing
from liere.shapes import Real
from liere.tracing import values_are_at_hand

__all__ = [
    "NO_POSITIONS",
    "GridKey",
    "KnownPositions",
    "check_coordinates",
    "check_given",
    "check_spacing",
    "make_positions",
    "model_augmentation",
    "prepare_given",
    "spacing_scale",
]

REMEDY = "leave it out, or use an encoding with coordinates, such as 'liere8', 'rope_mixed' or 'sincos'"


class GridKey(NamedTuple):
    """Everything that positions of a grid depend on."""

    grid: tuple[int, ...]
    trained: tuple[int, ...]
    policy: Policy
    placement: tuple[float, ...] | None  # offset in token steps
    num_central: int  # leading tokens at the center of the grid
    scale: tuple[float, ...] | None  # spacing relative to training
    device: torch.device
    dtype: torch.dtype


class KnownPositions(NamedTuple):
    """Positions of a grid, and what random changes of them are relative to."""

    key: GridKey | None
    positions: Tensor
    version: int
    spacing: Tensor
    extent: Tensor


NO_POSITIONS = KnownPositions(None, torch.empty(0), 0, torch.empty(0), torch.empty(0))


def make_positions(key: GridKey) -> KnownPositions:
    """Return the positions of a grid."""
    options: dict[str, Any] = {"device": key.device, "dtype": key.dtype}

    def vector(values: Iterable[float]) -> Tensor:
        return send(torch.tensor(list(values), dtype=key.dtype, device="cpu"), key.device)

    with torch.inference_mode(False):
        positions = grid_positions(key.grid, reference_shape=key.trained, policy=key.policy, **options)
        positions = _with_center(positions, key.num_central)
        steps = grid_spacing(key.grid, reference_shape=key.trained, policy=key.policy)
        spacing = vector(steps)
        extent = vector(float(n > 1) for n in key.trained)  # of the training grid, for every policy
        if key.placement is not None:
            positions = positions + vector(count * step for count, step in zip(key.placement, steps, strict=True))
        if key.scale is not None:
            scale = vector(key.scale)
            positions, spacing, extent = positions * scale, spacing * scale, extent * scale
        return KnownPositions(key, positions, positions._version, spacing, extent)


def prepare_given(
    positions: Real[Tensor, "*batch tokens ndim"],
    grid: tuple[int, ...],
    batch: int,
    num_central: int,
    device: torch.device,
    dtype: torch.dtype,
) -> Tensor:
    """Check given positions, and add those of prefix tokens at the center.

    Raises:
        TypeError: If they are not a tensor of real numbers in fp32, fp64 or integers.
        ValueError: If there is not one position for each patch.
    """
    check_positions(positions, len(grid))
    shape, patches = list(positions.shape), math.prod(grid)
    if shape[-2] != patches or shape[:-2] not in ([], [1], [batch]):
        raise InputError(
            f"positions has shape {shape}, but the input has {batch} examples of {patches} patches: give "
            f"[{patches}, {len(grid)}] or [{batch}, {patches}, {len(grid)}], without prefix tokens"
        )
    return _with_center(send(positions, device, dtype), num_central)


def _with_center(positions: Tensor, num_central: int) -> Tensor:
    if not num_central:
        return positions
    center = (positions.amin(-2, keepdim=True) + positions.amax(-2, keepdim=True)) / 2
    return torch.cat([center.expand(*center.shape[:-2], num_central, -1), positions], dim=-2)


def spacing_scale(spacing: Any, trained: tuple[float, ...], batch: int) -> tuple[float, ...] | Tensor:
    """Return a spacing relative to that of training: numbers, or a tensor `[1 or batch, 1, ndim]` for a tensor.

    Raises:
        ValueError: If the spacing is not positive or does not have one entry per axis.
    """
    ndim = len(trained)
    if not isinstance(spacing, Tensor):
        return tuple(new / old for new, old in zip(check_spacing(spacing, ndim), trained, strict=True))
    fits = list(spacing.shape) in ([ndim], [1, ndim], [batch, ndim])
    if fits and values_are_at_hand(spacing):  # elsewhere the check would synchronize
        fits = bool((spacing.isfinite() & (spacing > 0)).all())
    if not fits:
        raise InputError(
            f"spacing must hold positive numbers, one per axis, [{ndim}] or [{batch}, {ndim}], got {spacing!r}"
        )
    spacing = spacing.to(torch.promote_types(spacing.dtype, torch.float32))
    return (spacing / send(torch.tensor(trained, dtype=spacing.dtype, device="cpu"), spacing.device)).view(-1, 1, ndim)


def check_spacing(spacing: Any, ndim: int) -> tuple[float, ...]:
    """Return a spacing as one positive number per axis, or raise `ValueError`.

    Example:
        >>> check_spacing([2.5, 0.7, 0.7], 3)
        (2.5, 0.7, 0.7)
    """
    is_sequence = isinstance(spacing, Sequence) or getattr(spacing, "ndim", 0) == 1  # lists, tuples, arrays of NumPy
    sizes = tuple(spacing) if is_sequence and not isinstance(spacing, str) else ()
    are_numbers = all(isinstance(size, numbers.Real) and not isinstance(size, bool) for size in sizes)
    if len(sizes) != ndim or not are_numbers or not all(0 < size < math.inf for size in sizes):
        raise InputError(
            f"spacing must be one positive number per axis, got {spacing!r}: this model has {ndim} axes, so write "
            f"{(1.0,) * ndim} for the same on all"
        )
    return tuple(map(float, sizes))


def check_given(encoding: PositionEncoding, policy: Policy, positions: Any, spacing: Any) -> None:
    """Raise `ValueError` if given positions or a given spacing can have no meaning."""
    if positions is not None and spacing is not None:
        raise InputError(
            "positions and spacing are both given, but spacing scales the positions of the grid: give one of them, and "
            "multiply your positions yourself"
        )
    name = "spacing" if positions is None else "positions"
    if not encoding.has_coordinates:
        raise InputError(f"{name} has no effect on the encoding {type(encoding).__name__}: {REMEDY}")
    if spacing is not None and policy != "extend":
        raise InputError(
            f"spacing needs position_policy='extend', got {policy!r}, where the distance between tokens depends on "
            "their number: create the model with position_policy='extend'"
        )


def check_coordinates(
    encoding: PositionEncoding,
    changes: dict[str, float],
    cls_position: str,
    spacing: tuple[float, ...],
    num_prefix_tokens: int,
) -> None:
    """Raise `ValueError` if an option of a model changes coordinates, but the encoding has none."""
    asked = {
        **changes,
        **({"cls_position": cls_position} if cls_position != "none" else {}),
        **({"spacing": spacing} if set(spacing) != {1.0} else {}),
    }
    if asked and not encoding.has_coordinates:
        wrong = ", ".join(f"{name}={value!r}" for name, value in asked.items())
        raise InputError(f"{wrong} changes coordinates, but the encoding {type(encoding).__name__} has none: {REMEDY}")
    if cls_position == "unseen" and not isinstance(encoding, RotaryEncoding):
        raise InputError(
            f"cls_position='unseen' needs rotated keys, but the encoding {type(encoding).__name__} rotates none: "
            "leave it out"
        )
    if cls_position != "none" and not num_prefix_tokens:
        raise InputError(f"cls_position={cls_position!r} needs a CLS token: use pool='cls', or leave it out")


def model_augmentation(shift: float, stretch: float, zoom: float, noise: float) -> PositionAugmentation:
    """Return the random changes of a model's positions; errors have the names of the model's arguments."""
    try:
        return PositionAugmentation(shift, stretch, zoom, noise)
    except ValueError as error:
        raise InputError(f"position_{error}") from None
