"""The kernels of `exp_kernels` and `position_kernels` on devices other than the CPU, where no value is read.

Launching an operation takes as long as computing it for some megabytes, so chunks are larger than on CPU. They are not
larger than necessary, because the backward pass stores all squarings of a chunk.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from liere.rotations.precision import full_precision
from liere.rotations.uniform_exponential import exp_uniformly, pull_back_uniformly

__all__ = ["exp_backward", "exp_forward", "positions_backward", "positions_forward"]

CHUNK = 2**24
"""Bytes of the matrices that are computed at a time; the backward pass has about thirty times as many in memory."""


def exp_forward(X: Tensor) -> Tensor:
    """Return the exponentials of skew matrices `[n, b, b]`."""
    out = torch.empty_like(X, memory_format=torch.contiguous_format)
    with full_precision(X.device):
        for part in _chunks(len(X), X.shape[1:], X):
            out[part] = exp_uniformly(X[part].contiguous())
    return out


def exp_backward(X: Tensor, G: Tensor) -> Tensor:
    """Return the gradient of `<G, exp(X)>` with respect to `X`."""
    out = torch.empty_like(X, memory_format=torch.contiguous_format)
    with full_precision(X.device):
        for part in _chunks(len(X), X.shape[1:], X):
            out[part] = pull_back_uniformly(X[part].contiguous(), G[part])
    return out


def positions_forward(positions: Tensor, generators: Tensor) -> Tensor:
    """Return the rotations `[tokens, matrices, b, b]` of positions `[tokens, ndim]`."""
    out = generators.new_empty(len(positions), *generators.shape[1:])
    with full_precision(positions.device):
        for part in _chunks(len(positions), generators.shape[1:], generators):
            out[part].flatten(0, 1).copy_(exp_uniformly(_skew(positions[part], generators)))
    return out


def positions_backward(G: Tensor, positions: Tensor, generators: Tensor) -> Tensor:
    """Return the gradient of `<G, R>` with respect to the generators `[ndim, matrices, b, b]`."""
    out = torch.zeros_like(generators, memory_format=torch.contiguous_format)
    with full_precision(positions.device):
        for part in _chunks(len(positions), generators.shape[1:], generators):
            here = positions[part]
            gradient = pull_back_uniformly(_skew(here, generators), G[part].flatten(0, 1))
            out.flatten(1).addmm_(here.T, gradient.view(len(here), -1))
    return out


def _chunks(count: int, shape: torch.Size, like: Tensor) -> Iterator[slice]:
    """Yield slices of `count` members that have this shape."""
    size = max(1, CHUNK // max(1, shape.numel() * like.element_size()))
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def _skew(positions: Tensor, generators: Tensor) -> Tensor:
    """Return `sum_d p_d A_d` of positions `[tokens, ndim]`, `[tokens * matrices, b, b]`.

    Computed elementwise: products may run in lower precision, and large angles need all of it.
    """
    weights = positions.T[..., None, None, None]
    X = weights[0] * generators[0]
    for weight, A in zip(weights[1:], generators[1:], strict=True):
        X.addcmul_(weight, A)
    return X.flatten(0, 1)
