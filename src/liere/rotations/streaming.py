"""Rotating queries and keys straight from positions: rotations are made, used and dropped a few tokens at a time.

Memory does not grow with the number of rotations. The backward pass makes them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from liere.rotations.apply import rotate_together
from liere.rotations.exponential import norm_error_of_positions, position_rotations
from liere.rotations.monomials import generator_powers
from liere.rotations.squarings import LargeNormError
from liere.rotations.token_operator import rotate_tokens_operator
from liere.shapes import Float
from liere.tracing import kernels_may_run, values_are_visible, without_autocast

__all__ = ["fused_is_faster", "rotate_by_positions", "streams_by_itself"]

MAX_AXES = 4
"""With more axes, powers have more monomials than it takes to multiply matrices."""
CHUNK = 2**25
"""Bytes of the rotations that exist at a time, where they are made one after the other."""
STREAM_BEYOND = 2**28
"""Bytes of rotations; more are not made at once."""


def rotate_by_positions(
    xs: list[Float[Tensor, "*batch heads tokens head_dim"]],
    positions: Float[Tensor, "*#batch positions ndim"],
    generators: Float[Tensor, "ndim #heads blocks b b"],
    num_prefix_tokens: int = 0,
) -> list[Float[Tensor, "*batch heads tokens head_dim"]]:
    """Rotate tensors of one shape, such as queries and keys, by `exp(sum_d p_d A_d)`.

    The same as `rotate_together(xs, rotations)` with the rotations of these positions, within the bounds of rounding.
    Where ordinary operations have to do (tracing, function transforms, forward mode), rotations are made as a whole.

    Args:
        xs: Queries, keys.
        positions: In fp32 or fp64: for the whole batch, or for each member.
        generators: In the type of the positions.
        num_prefix_tokens: Leading tokens without a position, left as they are.
    """
    tensors = *xs, positions, generators
    # The fallback in operations of torch is not for `torch.compile`, which has to see them.
    has_kernel = _has_kernel(positions, generators)
    if not kernels_may_run(*tensors) or not (has_kernel or all(values_are_visible(x) for x in tensors)):
        (rotations,) = position_rotations(positions, generators[None])
        return rotate_together(xs, rotations, num_prefix_tokens)
    if has_kernel:
        return _fused(xs, positions, generators, num_prefix_tokens)
    return list(_Streamed.apply(num_prefix_tokens, positions, generators, *xs))


def streams_by_itself(positions: Tensor, generators: Tensor) -> bool:
    """Return whether rotations are better made a few tokens at a time: faster, or too large as a whole."""
    size = positions.shape[:-1].numel() * generators[0].numel() * generators.element_size()
    return size > STREAM_BEYOND or fused_is_faster(positions, generators)


def fused_is_faster(positions: Tensor, generators: Tensor) -> bool:
    """Return whether rotating takes less time without making the rotations as a whole.

    It does where each rotation meets few vectors: where the members of a batch have positions of their own.
    """
    own = positions.shape[:-2].numel() > 1
    return own and _has_kernel(positions, generators) and kernels_may_run(positions, generators)


def _has_kernel(positions: Tensor, generators: Tensor) -> bool:
    return generators.shape[-1] > 3 and positions.shape[-1] <= MAX_AXES and positions.device.type == "cpu"


def _fused(xs: list[Tensor], positions: Tensor, generators: Tensor, prefix: int) -> list[Tensor]:
    batch = xs[0].shape[:-3]
    if positions.shape[:-2].numel() == 1:  # one set for all
        own = positions.reshape(1, *positions.shape[-2:])
    else:
        own = positions.expand(*batch, *positions.shape[-2:]).reshape(batch.numel(), *positions.shape[-2:])
    flat = [x.reshape(batch.numel(), *x.shape[-3:]).transpose(1, 2) for x in xs]
    with without_autocast(positions.device):
        powers = generator_powers(generators)
    try:
        found = rotate_tokens_operator(flat, own, powers, prefix)
    except LargeNormError as error:
        raise norm_error_of_positions(error, positions) from None
    return [out.transpose(1, 2).reshape(x.shape) for out, x in zip(found, xs, strict=True)]


class _Streamed(torch.autograd.Function):
    """For closed forms and devices without the kernels: a chunk of tokens after the other, in operations of torch."""

    @staticmethod
    def forward(ctx: Any, prefix: int, positions: Tensor, generators: Tensor, *xs: Tensor) -> tuple[Tensor, ...]:
        ctx.prefix = prefix
        ctx.save_for_backward(positions, generators, *xs)
        outs = tuple(torch.empty_like(x) for x in xs)
        for out, x in zip(outs, xs, strict=True):
            out[..., :prefix, :] = x[..., :prefix, :]
        for tokens, within in _chunks(positions, generators, prefix):
            (rotations,) = position_rotations(positions[..., tokens, :], generators[None])
            for out, x in zip(outs, rotate_together([x[..., within, :] for x in xs], rotations), strict=True):
                out[..., within, :] = x
        return outs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        prefix, (positions, generators, *xs) = ctx.prefix, ctx.saved_tensors
        wants = ctx.needs_input_grad[1:]
        if torch.is_grad_enabled():  # somebody wants the gradient of the gradient
            (rotations,) = position_rotations(positions, generators[None])
            xs = [x.view_as(x) for x in xs]  # the same tensor may be given twice, and each has its own gradient
            inputs = [x for x, wanted in zip((positions, generators, *xs), wants, strict=True) if wanted]
            found = iter(torch.autograd.grad(rotate_together(xs, rotations, prefix), inputs, grads, create_graph=True))
            return None, *(next(found) if wanted else None for wanted in wants)
        outs = [
            torch.zeros_like(x) if wanted else None
            for x, wanted in zip((positions, generators, *xs), wants, strict=True)
        ]
        for out, grad in zip(outs[2:], grads, strict=True):
            if out is not None:
                out[..., :prefix, :] = grad[..., :prefix, :]
        for tokens, within in _chunks(positions, generators, prefix):
            places: list[Any] = [(..., tokens, slice(None)), ..., *[(..., within, slice(None))] * len(xs)]
            with torch.enable_grad():
                own = [
                    x[place].detach().requires_grad_(wanted)
                    for x, place, wanted in zip((positions, generators, *xs), places, wants, strict=True)
                ]
                (rotations,) = position_rotations(own[0], own[1][None])
                rotated = rotate_together(own[2:], rotations)
            found = iter(
                torch.autograd.grad(rotated, [x for x in own if x.requires_grad], [g[..., within, :] for g in grads])
            )
            for out, place in zip(outs, places, strict=True):
                if out is not None:  # only the gradient of generators is a sum
                    out[place] += next(found)
        return None, *outs


def _chunks(positions: Tensor, generators: Tensor, prefix: int) -> Iterator[tuple[slice, slice]]:
    """Yield the positions of a chunk, and the tokens that have them."""
    each = positions.shape[:-2].numel() * generators[0].numel() * generators.element_size()
    count = max(1, CHUNK // max(1, each))
    for start in range(0, positions.shape[-2], count):
        stop = min(start + count, positions.shape[-2])
        yield slice(start, stop), slice(prefix + start, prefix + stop)
