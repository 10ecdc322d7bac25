"""Rotating by positions as an operator of torch, with its gradient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from liere.generators import skew_at_positions
from liere.rotations import token_kernels
from liere.rotations.plain import exp_plainly, rotate_plainly

__all__ = ["rotate_tokens_operator"]


@torch.library.custom_op(
    "liere::rotate_tokens",
    mutates_args=(),
    schema="(Tensor[] xs, Tensor positions, Tensor powers, int prefix) -> Tensor[]",
)
def rotate_tokens_operator(xs: list[Tensor], positions: Tensor, powers: Tensor, prefix: int) -> list[Tensor]:
    """Rotate each `x` `[batch, tokens, heads, head_dim]` by positions `[batch or 1, positions, ndim]`.

    The powers are `generator_powers` of generators `[ndim, heads or 1, blocks, b, b]`, in the type of the positions.
    """
    return token_kernels.rotate_tokens_forward(xs, positions, powers, prefix)


@torch.library.custom_op(
    "liere::rotate_tokens_backward",
    mutates_args=(),
    schema="(Tensor[] grads, Tensor[] xs, Tensor positions, Tensor powers, int prefix, bool wants_positions) "
    "-> Tensor[]",
)
def _rotate_tokens_backward(
    grads: list[Tensor], xs: list[Tensor], positions: Tensor, powers: Tensor, prefix: int, wants_positions: bool
) -> list[Tensor]:
    outs, *others = token_kernels.rotate_tokens_backward(grads, xs, positions, powers, prefix, wants_positions)
    return [*outs, *others]


@rotate_tokens_operator.register_fake
def _(xs: list[Tensor], positions: Tensor, powers: Tensor, prefix: int) -> list[Tensor]:
    return [torch.empty_like(x, memory_format=torch.contiguous_format) for x in xs]


@_rotate_tokens_backward.register_fake
def _(
    grads: list[Tensor], xs: list[Tensor], positions: Tensor, powers: Tensor, prefix: int, wants_positions: bool
) -> list[Tensor]:
    of_xs = [torch.empty_like(x, memory_format=torch.contiguous_format) for x in grads]
    of_positions = positions.new_empty(positions.shape if wants_positions else 0)
    return [*of_xs, of_positions, powers.new_empty(powers.shape)]


def _setup(ctx: Any, inputs: tuple[list[Tensor], Tensor, Tensor, int], output: list[Tensor]) -> None:
    xs, positions, powers, ctx.prefix = inputs
    ctx.save_for_backward(positions, powers, *xs)


def _gradient(ctx: Any, grads: list[Tensor | None]) -> tuple[list[Any], Tensor | None, Tensor | None, None]:
    positions, powers, *xs = ctx.saved_tensors
    given = [torch.zeros_like(x) if grad is None else grad for grad, x in zip(grads, xs, strict=True)]
    wants_positions, wants_powers = positions.requires_grad, powers.requires_grad
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # somebody wants the gradient of the gradient
        xs = [x.view_as(x) for x in xs]  # the same tensor may be given twice, and each has its own gradient
        outs = _rotate_tokens_plainly(xs, positions, powers, ctx.prefix)
        inputs = [x for x in (*xs, positions, powers) if x.requires_grad]
        found = iter(torch.autograd.grad(outs, inputs, given, create_graph=True))
        of_xs = [next(found) if x.requires_grad else None for x in xs]
        of_positions = next(found) if wants_positions else None
        return of_xs, of_positions, next(found) if wants_powers else None, None
    if not (wants_positions or wants_powers):  # the transpose of a rotation is that of the opposite position
        return rotate_tokens_operator(given, -positions, powers, ctx.prefix), None, None, None
    *of_xs, of_positions, of_powers = _rotate_tokens_backward(given, xs, positions, powers, ctx.prefix, wants_positions)
    return of_xs, of_positions if wants_positions else None, of_powers if wants_powers else None, None


def _rotate_tokens_plainly(xs: list[Tensor], positions: Tensor, powers: Tensor, prefix: int) -> list[Tensor]:
    """Return the same in ordinary operations; of the powers, only the first is looked at."""
    rotations = exp_plainly(skew_at_positions(positions, powers[1 : 1 + positions.shape[-1]]))
    return [rotate_plainly(x.transpose(1, 2), rotations.to(x.dtype), prefix).transpose(1, 2) for x in xs]


rotate_tokens_operator.register_autograd(_gradient, setup_context=_setup)
