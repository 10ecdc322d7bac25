"""Rotation of queries and keys in a few large products, with the batch as columns.

All examples of a batch share the rotation of a position, so `R q` for the whole batch is a single matrix product.
Blocks too small for efficient products are combined into larger ones, padded with zeros. No temporary is larger than
the queries: tokens are processed in chunks that fit in the cache, and written directly to their place after the prefix.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from liere.rotations.buffers import take_buffer

__all__ = [
    "empty_gradient",
    "rotate_backward",
    "rotate_forward",
    "rotate_planes_backward",
    "rotate_planes_forward",
    "unrotated",
]

GROUP = 16
"""Blocks are combined up to this size: `torch.bmm` takes hardly longer for it than for smaller ones."""
CPU_CHUNK = 2**22
OTHER_DEVICE_CHUNK = 2**28


def rotate_forward(xs: list[Tensor], R: Tensor, prefix: int) -> list[Tensor]:
    """Rotate each `x` `[*batch, heads, tokens, head_dim]` by `R` `[heads or 1, positions, blocks, b, b]`."""
    groups = _group(R.mT)  # products with transposed matrices take twice as long as with matrices as they are
    width = groups.shape[2] * groups.shape[4]
    outs = [unrotated(x, prefix, width) for x in xs]
    for tokens in _chunks(xs, R.shape[1]):
        columns = _gather("columns", xs, groups, tokens, prefix)
        _scatter(_product(columns, groups[tokens].flatten(0, 2)), outs, groups, tokens, prefix)
    return outs


def rotate_backward(
    grads: list[Tensor], xs: list[Tensor], R: Tensor, prefix: int, wants_rotations: bool
) -> tuple[list[Tensor], Tensor]:
    """Return the gradients of the tensors and of the rotations (empty if not wanted)."""
    groups = _group(R)
    width = groups.shape[2] * groups.shape[4]
    outs = [unrotated(grad, prefix, width, empty_gradient(x)) for grad, x in zip(grads, xs, strict=True)]
    heads, positions, blocks, size, _ = R.shape
    # Positions come first in memory, as in the rotations and in the gradient of the exponential.
    dR = R.new_empty((positions, heads, blocks, size, size) if wants_rotations else 0)
    for tokens in _chunks(xs, positions):
        columns = _gather("columns", grads, groups, tokens, prefix)
        _scatter(_product(columns, groups[tokens].flatten(0, 2)), outs, groups, tokens, prefix)
        if wants_rotations:
            products = _product(columns.mT, _gather("others", xs, groups, tokens, prefix))
            dR[tokens] = _ungroup(products.view(groups[tokens].shape), size)
    return outs, dR.transpose(0, 1) if wants_rotations else dR


def rotate_planes_forward(xs: list[Tensor], R: Tensor, prefix: int) -> list[Tensor]:
    """Rotate by `R` `[*batch, heads, positions, pairs, 2, 2]` as complex numbers."""
    return _turn(xs, R, prefix, [unrotated(x, prefix, 2 * R.shape[-3]) for x in xs])


def _turn(xs: list[Tensor], R: Tensor, prefix: int, outs: list[Tensor]) -> list[Tensor]:
    turns = _turns(R)
    width = 2 * turns.shape[-1]
    for x, out in zip(xs, outs, strict=True):
        torch.mul(_as_complex(x, prefix, width), turns, out=_as_complex(out, prefix, width))
    return outs


def rotate_planes_backward(
    grads: list[Tensor], xs: list[Tensor], R: Tensor, prefix: int, wants_rotations: bool
) -> tuple[list[Tensor], Tensor]:
    """Return the gradients of the tensors, and that of the rotations in their first column."""
    width = 2 * R.shape[-3]
    outs = [unrotated(grad, prefix, width, empty_gradient(x)) for grad, x in zip(grads, xs, strict=True)]
    _turn(grads, R.mT, prefix, outs)
    if not wants_rotations:
        return outs, R.new_empty(0)
    sums = torch.zeros_like(_turns(R))
    pairs = [(_as_complex(g, prefix, width), _as_complex(x, prefix, width)) for g, x in zip(grads, xs, strict=True)]
    for tokens in _chunks([*grads, *xs], R.shape[-4]):
        for g, x in pairs:
            product = g[..., tokens, :] * x[..., tokens, :].conj()
            sums[..., tokens, :] += product.sum_to_size(sums[..., tokens, :].shape)
    dR = torch.zeros_like(R)
    dR[..., 0, 0], dR[..., 1, 0] = sums.real, sums.imag
    return outs, dR


def _group(R: Tensor) -> Tensor:
    """Return `[positions, heads, groups, g, g]`, where each group has several blocks on its diagonal."""
    R = R.transpose(0, 1)
    positions, heads, blocks, size, _ = R.shape
    together = max((n for n in range(1, blocks + 1) if blocks % n == 0 and n * size <= GROUP), default=1)
    if together == 1:
        return R.contiguous()
    groups = R.new_zeros(positions, heads, blocks // together, together, size, together, size)
    groups.diagonal(dim1=3, dim2=5).copy_(R.unflatten(2, (-1, together)).movedim(3, -1))
    return groups.flatten(5, 6).flatten(3, 4)


def _ungroup(groups: Tensor, size: int) -> Tensor:
    """Return the blocks on the diagonals of groups, `[positions, heads, blocks, b, b]`."""
    together = groups.shape[-1] // size
    apart = groups.unflatten(-1, (together, size)).unflatten(-3, (together, size))
    return apart.diagonal(dim1=3, dim2=5).movedim(-1, 3).flatten(2, 3)


def unrotated(x: Tensor, prefix: int, width: int, out: Tensor | None = None) -> Tensor:
    """Return `out`, by default a new contiguous tensor, with the unrotated parts of `x` copied to it."""
    out = torch.empty_like(x, memory_format=torch.contiguous_format) if out is None else out
    out[..., :prefix, :] = x[..., :prefix, :]
    out[..., width:] = x[..., width:]
    return out


def empty_gradient(x: Tensor) -> Tensor:
    """Return an uninitialized tensor for the gradient of `x`, whose axes have the same order in memory.

    Queries and keys are views of the result of a projection, with heads after tokens. There, gradients are written in
    longer rows than if heads came first, and those of queries, keys and values are put together in long rows, too.
    """
    dense = x.stride(-1) == 1
    return torch.empty_like(x, memory_format=torch.preserve_format if dense else torch.contiguous_format)


def _chunks(xs: list[Tensor], positions: int) -> Iterator[slice]:
    """Yield slices of tokens that are small enough for all tensors together."""
    chunk = CPU_CHUNK if xs[0].device.type == "cpu" else OTHER_DEVICE_CHUNK
    bytes_each = sum(x.numel() * x.element_size() for x in xs) // max(1, xs[0].shape[-2])
    count = max(1, chunk // max(1, bytes_each))
    return (slice(start, min(start + count, positions)) for start in range(0, positions, count))


def _places(xs: list[Tensor], groups: Tensor, tokens: slice, prefix: int) -> Iterator[Tensor]:
    """Yield views `[tokens, heads, groups, columns..., g]` of the rotated part of each tensor."""
    count, size = groups.shape[2], groups.shape[-1]
    for x in xs:
        body = x[..., prefix + tokens.start : prefix + tokens.stop, : count * size].unflatten(-1, (count, size))
        body = body.reshape(-1, *body.shape[-4:]) if x.ndim > 4 else body if x.ndim == 4 else body[None]
        # [batch, heads, tokens, groups, g]; heads that share rotations are columns as well.
        yield body.permute(2, 1, 3, 0, 4) if groups.shape[1] > 1 else body.permute(2, 3, 0, 1, 4)[:, None]


def _product(a: Tensor, b: Tensor) -> Tensor:
    return torch.bmm(a, b, out=take_buffer("product", (*a.shape[:2], b.shape[2]), a))


def _gather(key: str, xs: list[Tensor], groups: Tensor, tokens: slice, prefix: int) -> Tensor:
    """Return the columns `[tokens * heads * groups, tensors * batch, g]`."""
    places = list(_places(xs, groups, tokens, prefix))
    shape = places[0].shape
    columns = take_buffer(key, (*shape[:3], len(places), *shape[3:]), xs[0])
    for place, part in zip(places, columns.unbind(3), strict=True):
        part.copy_(place)
    return columns.view(columns.shape[:3].numel(), columns.shape[3:-1].numel(), columns.shape[-1])


def _scatter(columns: Tensor, outs: list[Tensor], groups: Tensor, tokens: slice, prefix: int) -> None:
    """Copy columns to their places in the outputs."""
    places = list(_places(outs, groups, tokens, prefix))
    shape = (*places[0].shape[:3], len(places), *places[0].shape[3:])
    for place, part in zip(places, columns.view(shape).unbind(3), strict=True):
        place.copy_(part)


def _turns(R: Tensor) -> Tensor:
    """Return plane rotations as complex numbers: `R (x, y)` is `turn (x + iy)`."""
    return torch.complex(R[..., 0, 0].contiguous(), R[..., 1, 0].contiguous())


def _as_complex(x: Tensor, prefix: int, width: int) -> Tensor:
    return torch.view_as_complex(x[..., prefix:, :width].unflatten(-1, (-1, 2)))
