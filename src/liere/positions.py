"""Token positions: regular grids, and checks for positions from any source."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

from liere.errors import InputError, InputTypeError, suggest
from liere.shapes import Float
from liere.tracing import values_are_at_hand

__all__ = ["Policy", "check_policy", "check_positions", "grid_positions", "grid_spacing"]

Policy = Literal["extend", "rescale", "reference"]


def grid_positions(
    shape: Sequence[int],
    *,
    reference_shape: Sequence[int] | None = None,
    policy: Policy = "extend",
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "tokens ndim"]:
    """Return the position of every cell of a grid, in the order of a flattened tensor of that shape.

    The training grid, `reference_shape`, spans [0, 1] on each axis. The policy determines what happens on other grids:

    - `extend`: neighbors keep the distance `1 / (n_ref - 1)` of the training grid; larger grids extend beyond 1.
    - `rescale`: the range stays [0, 1]; more tokens are closer together.
    - `reference`: `linspace(0, n / n_ref, n)`, as in the published LieRE code. The distance between neighbors
      drifts with the resolution; use it only to match that code.

    Without `reference_shape`, the grid always spans [0, 1], which is correct only for the training grid. At another
    resolution, the spacing would differ from the one the model was trained with, so pass the training grid.

    Args:
        shape: Number of tokens on each axis, in the order of the input tensor (time, rows, columns).
        reference_shape: Number of tokens on each axis in training; None means that `shape` is the training grid.
        policy: `"extend"`, `"rescale"` or `"reference"`.
        device: Device of the result.
        dtype: Floating-point type of the result; by default torch's default type.

    Returns:
        Positions of shape `[prod(shape), len(shape)]`.

    Raises:
        TypeError: If a shape is not a sequence of ints, or `dtype` is not a floating-point type.
        ValueError: If a shape is empty or not positive, if the shapes differ in length, or if the policy is unknown.

    Example:
        >>> grid_positions((2, 2))
        tensor([[0., 0.],
                [0., 1.],
                [1., 0.],
                [1., 1.]])
        >>> grid_positions((5,)).flatten()  # for a model trained on 5 tokens
        tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
        >>> grid_positions((5,), reference_shape=(3,)).flatten()  # for a model trained on 3: same spacing
        tensor([0.0000, 0.5000, 1.0000, 1.5000, 2.0000])
        >>> grid_positions((5,), reference_shape=(3,), policy="rescale").flatten()
        tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    check_policy(policy)
    if dtype is not None and not dtype.is_floating_point:
        raise InputTypeError(f"dtype must be a floating-point type, got {dtype}")
    shape = _check_shape("shape", shape)
    reference_shape = shape if reference_shape is None else _check_shape("reference_shape", reference_shape)
    if len(shape) != len(reference_shape):
        raise InputError(
            f"reference_shape has {len(reference_shape)} axes {reference_shape}, but shape has {len(shape)} "
            f"{shape}: give both one entry per axis"
        )
    dtype = dtype or torch.get_default_dtype()
    axes = [_axis(n, n_ref, policy, device, dtype) for n, n_ref in zip(shape, reference_shape, strict=True)]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).flatten(0, -2)


def grid_spacing(shape: Sequence[int], *, reference_shape: Sequence[int], policy: Policy = "extend") -> list[float]:
    """Return the distance between neighbors on each axis of a grid made by `grid_positions`; 1 if there are none.

    Example:
        >>> grid_spacing((9, 5), reference_shape=(5, 5)), grid_spacing((9, 5), reference_shape=(5, 5), policy="rescale")
        ([0.25, 0.25], [0.125, 0.25])
    """
    check_policy(policy)

    def axis(n: int, n_ref: int) -> float:
        if policy == "extend":
            return 1 / max(n_ref - 1, 1)
        return (n / n_ref if policy == "reference" else 1.0) / max(n - 1, 1)

    return [axis(n, n_ref) for n, n_ref in zip(shape, reference_shape, strict=True)]


def check_policy(policy: str) -> None:
    """Raise `ValueError` unless `policy` is a policy of `grid_positions`."""
    if policy not in get_args(Policy):
        raise InputError(f"unknown position policy {policy!r}: {suggest(str(policy), get_args(Policy))}")


def check_positions(positions: Tensor, ndim: int, *, name: str = "positions", allow_half: bool = False) -> None:
    """Raise unless `positions` is a real tensor `[*batch, tokens, ndim]` of finite numbers.

    Half precision is refused: on a 56 x 56 grid, bf16 moves tokens by up to a tenth of their distance. Finiteness is
    checked only for CPU tensors in eager mode: elsewhere the check would synchronize or break a trace.
    """
    if not isinstance(positions, Tensor):
        raise InputTypeError(
            f"{name} must be a tensor of shape [*batch, tokens, {ndim}], got {type(positions).__name__}: "
            f"convert it with torch.as_tensor"
        )
    if positions.is_nested:
        raise InputTypeError(
            f"{name} is a nested tensor, which only rope(q, k, positions) takes: pass {name}.values(), the positions "
            "of all sequences one after another"
        )
    if positions.is_complex() or positions.dtype == torch.bool:
        raise InputTypeError(f"{name} must hold real numbers, got dtype {positions.dtype}: convert them to floats")
    if not allow_half and positions.is_floating_point() and positions.element_size() < 4:
        raise InputTypeError(
            f"{name} must be fp32, fp64 or integers, got {positions.dtype}, which is too coarse: make them in fp32; "
            "if they are a buffer, .half() and .bfloat16() convert it, so make them in forward instead"
        )
    if positions.ndim < 2 or positions.shape[-1] != ndim:
        raise InputError(
            f"{name} has shape {list(positions.shape)}, but this encoding has {ndim} axes and needs "
            f"[*batch, tokens, {ndim}]: give one coordinate per axis, or build the encoding with another ndim"
        )
    if values_are_at_hand(positions) and not positions.isfinite().all():
        bad = (~positions.isfinite()).nonzero()[0].tolist()
        raise InputError(
            f"{name}{bad} is {positions[tuple(bad)].item()}: positions must be finite; "
            "give padded tokens position 0 and mask them in the attention"
        )


def _check_shape(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    try:
        result = tuple(operator.index(n) for n in shape)
    except TypeError:
        remedy = f"({shape!r},) for one axis" if isinstance(shape, int) else "one int per axis, like (14, 14)"
        raise InputTypeError(f"{name} must be a sequence of ints, got {shape!r}: write {remedy}") from None
    if not result or any(n < 1 for n in result):
        raise InputError(f"{name} must have at least one axis, each with at least one token, got {tuple(shape)}")
    return result


def _axis(n: int, n_ref: int, policy: Policy, device: torch.device | str | None, dtype: torch.dtype) -> Tensor:
    """Return the coordinates on one axis of a grid of n tokens for a model trained on n_ref."""
    if policy == "reference":
        return torch.linspace(0, n / n_ref, n, device=device, dtype=dtype)
    steps = (n_ref if policy == "extend" else n) - 1
    return torch.arange(n, device=device, dtype=dtype) / max(steps, 1)
