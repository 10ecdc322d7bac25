"""The exponential of many matrices and its gradient, computed in chunks that fit in the cache, with reused buffers.

Large temporaries cost more than the products: they are allocated each time and do not fit in the cache. So the batch is
sorted by the number of squarings that its members need, and cut into chunks that stay in the cache.

The functions of this file read values, so they are for tensors in host memory. They run inside operators that are
opaque to `torch.compile`. Those for other devices are in `device_kernels`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from liere.rotations.chunk_exponential import pull_back_chunk, store_exponentials
from liere.rotations.layouts import Columns
from liere.rotations.polynomial import POLYNOMIALS
from liere.rotations.precision import full_precision
from liere.rotations.squarings import check_norms, cut_chunks, levels, skew_norm, sort_by_level
from liere.rotations.workspace import Members, Workspace

__all__ = ["exp_backward", "exp_forward"]


def exp_forward(X: Tensor) -> Tensor:
    """Return the exponentials of skew matrices `[n, b, b]`."""
    return _exp_sorted(X, gradient=False)


def exp_backward(X: Tensor, G: Tensor) -> Tensor:
    """Return the gradient of `<G, exp(X)>` with respect to `X`."""
    return _exp_sorted(X, G, gradient=True)


def _exp_sorted(X: Tensor, *others: Tensor, gradient: bool) -> Tensor:
    p, work = POLYNOMIALS[X.dtype], Workspace(X)
    norms = skew_norm(X)
    check_norms(norms, lambda large: X[large])
    own = levels(norms, p)
    order = sort_by_level(own)
    out = torch.empty_like(X, memory_format=torch.contiguous_format)
    # Reordering tiny matrices is faster all at once than chunk by chunk.
    final = _inverse(order) if order is not None and work.layout is Columns else None
    target = Members(work, out, order if final is None else None)
    source, *gradients = (Members(work, x, order) for x in (X, *others))
    with full_precision(work.device):
        for chunk in cut_chunks(own, work.capacity):
            w = work.begin(chunk)
            source.load(chunk.members, w.A)
            if gradient:
                target.store(chunk.members, pull_back_chunk(work, w, p, chunk, *gradients))
            else:
                store_exponentials(work, w, p, chunk, target)
    return out if final is None else out.index_select(0, final)


def _inverse(order: Tensor) -> Tensor:
    return torch.empty_like(order).scatter_(0, order, torch.arange(len(order)))
