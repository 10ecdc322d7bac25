"""The kernels as custom torch operators with gradients, which `torch.compile` treats as opaque."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from liere.generators import skew_at_positions
from liere.rotations import apply_each, apply_kernels, device_kernels, exp_kernels, position_kernels
from liere.rotations.plain import exp_plainly, rotate_plainly
from liere.rotations.rays import Rays, find_rays
from liere.rotations.series import choose_degree, series_backward, series_forward

__all__ = [
    "exp_skew_operator",
    "positions_operator",
    "rotate_each_operator",
    "rotate_operator",
    "rotate_planes_operator",
]


@torch.library.custom_op("liere::exp_skew", mutates_args=(), schema="(Tensor X) -> Tensor")
def exp_skew_operator(X: Tensor) -> Tensor:
    """Return the exponentials of skew matrices `[n, b, b]`."""
    return (exp_kernels if X.device.type == "cpu" else device_kernels).exp_forward(X)


@torch.library.custom_op("liere::exp_skew_backward", mutates_args=(), schema="(Tensor X, Tensor grad) -> Tensor")
def _exp_skew_backward(X: Tensor, grad: Tensor) -> Tensor:
    return (exp_kernels if X.device.type == "cpu" else device_kernels).exp_backward(X, grad)


@exp_skew_operator.register_fake
def _(X: Tensor) -> Tensor:
    return torch.empty_like(X, memory_format=torch.contiguous_format)


@_exp_skew_backward.register_fake
def _(X: Tensor, grad: Tensor) -> Tensor:
    return torch.empty_like(X, memory_format=torch.contiguous_format)


def _exp_setup(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _exp_gradient(ctx: Any, grad: Tensor) -> Tensor:
    (X,) = ctx.saved_tensors
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # a second derivative is needed
        (gradient,) = torch.autograd.grad(exp_plainly(X), X, grad, create_graph=True)
        return gradient
    return _exp_skew_backward(X, grad)


exp_skew_operator.register_autograd(_exp_gradient, setup_context=_exp_setup)


@torch.library.custom_op(
    "liere::rotations", mutates_args=(), schema="(Tensor positions, Tensor generators, Tensor? norms) -> Tensor"
)
def positions_operator(positions: Tensor, generators: Tensor, norms: Tensor | None) -> Tensor:
    """Return the rotations `[tokens, matrices, b, b]` of positions `[tokens, ndim]`.

    The generators are `[ndim, matrices, b, b]`, in the dtype of the positions. Norms, if known, are in host memory;
    they are not needed on other devices.
    """
    if positions.device.type != "cpu":
        return device_kernels.positions_forward(positions, generators)
    degree = choose_degree(positions, generators)
    if degree is not None:
        return series_forward(positions, generators, degree)
    return position_kernels.positions_forward(positions, generators, *_plan(positions, generators, norms))


@torch.library.custom_op(
    "liere::rotations_backward",
    mutates_args=(),
    schema="(Tensor grad, Tensor positions, Tensor generators, Tensor rotations, Tensor? norms) -> Tensor",
)
def _positions_backward(
    grad: Tensor, positions: Tensor, generators: Tensor, rotations: Tensor, norms: Tensor | None
) -> Tensor:
    if positions.device.type != "cpu":
        return device_kernels.positions_backward(grad, positions, generators)
    degree = choose_degree(positions, generators)
    if degree is not None:
        return series_backward(grad, positions, generators, degree)
    return position_kernels.positions_backward(
        grad, positions, generators, rotations, *_plan(positions, generators, norms)
    )


@positions_operator.register_fake
def _(positions: Tensor, generators: Tensor, norms: Tensor | None) -> Tensor:
    return generators.new_empty(positions.shape[0], *generators.shape[1:])


@_positions_backward.register_fake
def _(grad: Tensor, positions: Tensor, generators: Tensor, rotations: Tensor, norms: Tensor | None) -> Tensor:
    return torch.empty_like(generators, memory_format=torch.contiguous_format)


def _positions_setup(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor | None], output: Tensor) -> None:
    positions, generators, norms = inputs
    ctx.save_for_backward(positions, generators, output)
    ctx.norms = norms


def _positions_gradient(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None]:
    positions, generators, rotations = ctx.saved_tensors
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        X = skew_at_positions(positions, generators[:, None])[0]
        (gradient,) = torch.autograd.grad(exp_plainly(X), generators, grad, create_graph=True)
        return None, gradient, None
    return None, _positions_backward(grad, positions, generators, rotations, ctx.norms), None


positions_operator.register_autograd(_positions_gradient, setup_context=_positions_setup)


def _plan(positions: Tensor, generators: Tensor, norms: Tensor | None) -> tuple[Tensor, Rays | None]:
    if norms is None:
        norms = position_kernels.position_norms(positions, generators[None])[0]
    return norms, find_rays(positions)


def _define_rotation(name: str, forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[..., Any]:
    """Define an operator that rotates tensors, with its gradient."""

    @torch.library.custom_op(
        f"liere::{name}", mutates_args=(), schema="(Tensor[] xs, Tensor rotations, int prefix) -> Tensor[]"
    )
    def operator(xs: list[Tensor], rotations: Tensor, prefix: int) -> list[Tensor]:
        return forward([_dense_pairs(x) for x in xs], rotations, prefix)

    @torch.library.custom_op(
        f"liere::{name}_backward",
        mutates_args=(),
        schema="(Tensor[] grads, Tensor[] xs, Tensor rotations, int prefix, bool wants_rotations) -> Tensor[]",
    )
    def operator_backward(
        grads: list[Tensor], xs: list[Tensor], rotations: Tensor, prefix: int, wants_rotations: bool
    ) -> list[Tensor]:
        grads, xs = [_dense_pairs(x) for x in grads], [_dense_pairs(x) for x in xs]
        outs, of_rotations = backward(grads, xs, rotations, prefix, wants_rotations)
        return [*outs, of_rotations]

    @operator.register_fake
    def _(xs: list[Tensor], rotations: Tensor, prefix: int) -> list[Tensor]:
        return [torch.empty_like(x, memory_format=torch.contiguous_format) for x in xs]

    @operator_backward.register_fake
    def _(grads: list[Tensor], xs: list[Tensor], rotations: Tensor, prefix: int, wants_rotations: bool) -> list[Tensor]:
        of_rotations = rotations.new_empty(0)
        if wants_rotations:
            of_rotations = torch.empty_like(rotations)
            if name == "rotate":  # positions come first in memory
                of_rotations = rotations.new_empty(rotations.transpose(0, 1).shape).transpose(0, 1)
        return [*(apply_kernels.empty_gradient(x) for x in xs), of_rotations]

    def setup(ctx: Any, inputs: tuple[list[Tensor], Tensor, int], output: list[Tensor]) -> None:
        xs, rotations, ctx.prefix = inputs
        ctx.save_for_backward(rotations, *xs)

    def gradient(ctx: Any, grads: list[Tensor | None]) -> tuple[list[Tensor], Tensor | None, None]:
        rotations, *xs = ctx.saved_tensors
        given = [torch.zeros_like(x) if grad is None else grad for grad, x in zip(grads, xs, strict=True)]
        wants = rotations.requires_grad
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            xs = [x.view_as(x) for x in xs]  # the same tensor may be given twice, and each has its own gradient
            outs = [rotate_plainly(x, rotations, ctx.prefix) for x in xs]
            inputs = [x for x in (*xs, rotations) if x.requires_grad]
            found = iter(torch.autograd.grad(outs, inputs, given, create_graph=True))
            of_xs: list[Any] = [next(found) if x.requires_grad else None for x in xs]
            return of_xs, next(found) if wants else None, None
        *of_xs, of_rotations = operator_backward(given, xs, rotations, ctx.prefix, wants)
        return of_xs, of_rotations if wants else None, None

    operator.register_autograd(gradient, setup_context=setup)
    return operator


def _dense_pairs(x: Tensor) -> Tensor:
    """Return `x`, copied if necessary so that rows are contiguous and begin at even offsets."""
    if x.stride(-1) != 1:
        return x.clone(memory_format=torch.contiguous_format)
    even = x.storage_offset() % 2 == 0 and all(stride % 2 == 0 for stride in x.stride()[:-1])
    return x if even else x.clone()  # with axes in the same order, as its gradient will have


rotate_operator = _define_rotation("rotate", apply_kernels.rotate_forward, apply_kernels.rotate_backward)
rotate_planes_operator = _define_rotation(
    "rotate_planes", apply_kernels.rotate_planes_forward, apply_kernels.rotate_planes_backward
)
rotate_each_operator = _define_rotation("rotate_each", apply_each.rotate_each_forward, apply_each.rotate_each_backward)
