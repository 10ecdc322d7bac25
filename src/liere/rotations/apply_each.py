"""Rotating where each member of a batch has its own rotations: every matrix meets one vector of each tensor.

Rotations are `b` times as large as what they rotate. They are read once in the order in which they are in memory, and
their gradient is written once. Nothing else of that size is made.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from liere.rotations.apply_kernels import empty_gradient, unrotated
from liere.tracing import without_autocast

__all__ = ["rotate_each_backward", "rotate_each_forward"]

CHUNK = 2**22
"""Bytes of the rotations that are used at a time."""


def rotate_each_forward(xs: list[Tensor], R: Tensor, prefix: int) -> list[Tensor]:
    """Rotate each `x` `[*batch, heads, tokens, head_dim]` by `R` `[*batch, heads or 1, positions, blocks, b, b]`."""
    outs = [unrotated(x, prefix, R.shape[-3] * R.shape[-1]) for x in xs]
    for tokens in _chunks(R):
        own = R[..., tokens, :, :, :]
        for x, out in zip(xs, outs, strict=True):
            _multiply("...ij,...j->...i", own, _vectors(x, R, tokens, prefix), _vectors(out, R, tokens, prefix))
    return outs


def rotate_each_backward(
    grads: list[Tensor], xs: list[Tensor], R: Tensor, prefix: int, wants_rotations: bool
) -> tuple[list[Tensor], Tensor]:
    """Return the gradients of the tensors and of the rotations (empty if not wanted)."""
    width = R.shape[-3] * R.shape[-1]
    outs = [unrotated(grad, prefix, width, empty_gradient(x)) for grad, x in zip(grads, xs, strict=True)]
    dR = torch.empty_like(R) if wants_rotations else R.new_empty(0)
    for tokens in _chunks(R):
        own = R[..., tokens, :, :, :]
        pairs = [
            (_vectors(g, R, tokens, prefix), _vectors(x, R, tokens, prefix)) for g, x in zip(grads, xs, strict=True)
        ]
        for (grad, _), out in zip(pairs, outs, strict=True):
            _multiply("...ij,...i->...j", own, grad, _vectors(out, R, tokens, prefix))
        if wants_rotations:
            _add_up(pairs, dR[..., tokens, :, :, :])
    return outs, dR


def _chunks(R: Tensor) -> Iterator[slice]:
    each = R[..., :1, :, :, :].numel() * R.element_size()
    count = max(1, CHUNK // max(1, each))
    return (slice(start, min(start + count, R.shape[-4])) for start in range(0, R.shape[-4], count))


def _vectors(x: Tensor, R: Tensor, tokens: slice, prefix: int) -> Tensor:
    """Return the vectors of some tokens, `[*batch, heads, tokens, blocks, b]`."""
    blocks, size = R.shape[-3], R.shape[-1]
    body = x[..., prefix + tokens.start : prefix + tokens.stop, : blocks * size]
    return body.unflatten(-1, (blocks, size))


def _multiply(how: str, R: Tensor, vectors: Tensor, out: Tensor) -> None:
    R = R.expand(*vectors.shape, R.shape[-1])
    # In the order of the rotations' memory: otherwise the product would begin with a copy of them.
    strides = R.stride()
    order = sorted(range(vectors.ndim - 1), key=lambda dim: -strides[dim])
    with without_autocast(R.device):
        product = torch.einsum(how, R.permute(*order, -2, -1), vectors.permute(*order, -1))
    out.permute(*order, -1).copy_(product)


def _add_up(pairs: list[tuple[Tensor, Tensor]], out: Tensor) -> None:
    """Write the sum of the outer products of pairs; also over what shares a rotation."""
    shared = pairs[0][0].shape != out.shape[:-1]
    total = out.new_empty(*pairs[0][0].shape, out.shape[-1]) if shared else out
    for index, (left, right) in enumerate(pairs):
        if index == 0:
            torch.mul(left[..., None], right[..., None, :], out=total)
        else:
            total.addcmul_(left[..., None], right[..., None, :])
    if shared:
        out.copy_(total.sum_to_size(out.shape))
