"""Rotations of positions and their gradient, with the sums of generators in memory for one chunk at a time only.

Positions that are multiples of each other lie on a ray, where rotations are products of each other.

The functions of this file read values, so they are for tensors in host memory. They run inside operators that are
opaque to `torch.compile`. Those for other devices are in `device_kernels`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from liere.rotations.chunk_exponential import pull_back_chunk, store_exponentials
from liere.rotations.layouts import Columns, Rows, layout_for
from liere.rotations.polynomial import POLYNOMIALS
from liere.rotations.precision import full_precision
from liere.rotations.rays import Rays
from liere.rotations.squarings import check_norms, cut_chunks, levels, sort_by_level
from liere.rotations.workspace import Members, Workspace

__all__ = ["Plan", "make_plan", "position_norms", "positions_backward", "positions_forward"]


def position_norms(positions: Tensor, generators: Tensor) -> Tensor:
    """Return a bound on the norms of the matrices of each layer and position.

    Args:
        positions: `[tokens, ndim]`.
        generators: `[layers, ndim, matrices, b, b]`.

    Raises:
        ValueError: If a norm exceeds `MAX_NORM`.
    """
    if not positions.numel() or not generators.numel():
        return torch.zeros(generators.shape[0], positions.shape[0])
    # |sum p_d A_d|^2 = sum p_d p_e <A_d, A_e>, elementwise as products may run in TF32, with a margin for rounding.
    flat, ndim = generators.detach().flatten(-2), positions.shape[-1]
    squares = largest = torch.zeros((), dtype=flat.dtype, device=flat.device)
    for d, e in itertools.product(range(ndim), repeat=2):
        inner = (flat[:, d] * flat[:, e]).sum(-1)[:, None]  # [layers, 1, matrices]
        weights = (positions[:, d] * positions[:, e])[:, None]
        squares = squares + weights * inner
        largest = largest + (weights * inner).abs()
    norms = ((squares + 32 * torch.finfo(flat.dtype).eps * largest).clamp(min=0) / 2).sqrt()
    norms = norms.nan_to_num(nan=0.0, posinf=torch.inf).amax(-1)
    check_norms(norms, lambda large: _written(positions, generators, large))
    return norms


def positions_forward(positions: Tensor, generators: Tensor, norms: Tensor, rays: Rays | None) -> Tensor:
    """Return the rotations `[tokens, matrices, b, b]` of positions `[tokens, ndim]`.

    The sums `X = sum_d p_d A_d` are in memory for one chunk at a time only. Along rays, rotations are products.
    """
    work = Workspace(generators, generators.shape[1])
    plan = make_plan(positions, generators, norms, rays)
    out = generators.new_empty(len(plan.positions), *generators.shape[1:])
    with full_precision(work.device):
        _fill(work, out, generators, plan)
    return out[: len(positions)]


def positions_backward(
    G: Tensor, positions: Tensor, generators: Tensor, R: Tensor, norms: Tensor, rays: Rays | None
) -> Tensor:
    """Return the gradient of `<G, R>` with respect to the generators `[ndim, matrices, b, b]`."""
    matrices = generators.shape[1]
    p, work = POLYNOMIALS[positions.dtype], Workspace(generators, matrices)
    out = torch.zeros_like(generators, memory_format=torch.contiguous_format)
    plan = make_plan(positions, generators, norms, rays)
    extra = len(plan.positions) - len(positions)
    with full_precision(work.device):
        waves = list(_waves(plan.rays, work))
        if extra and plan.rays is not None:
            R = torch.cat([R, R.new_empty(extra, *R.shape[1:])])
            _fill(Workspace(generators, matrices), R, generators, plan._replace(rays=plan.rays.of_extra()))
        if waves:
            G = torch.cat([G, G.new_zeros(extra, *G.shape[1:])])
        for derived, left, right in reversed(waves):
            gradient = G[derived].flatten(0, 1)
            G[left] += (gradient @ R[right].flatten(0, 1).mT).unflatten(0, (-1, matrices))
            G[right] += (R[left].flatten(0, 1).mT @ gradient).unflatten(0, (-1, matrices))
        roots, positions, own = plan.ordered_roots()
        gradients = Members(work, G, roots)
        for chunk in cut_chunks(own, work.capacity):
            w, here = work.begin(chunk), positions[chunk.members]
            _write_skew(work, here, generators, w.A)
            _sum_positions(work, here, pull_back_chunk(work, w, p, chunk, gradients), out)
    return out


class Plan(NamedTuple):
    """How rotations of positions are computed."""

    positions: Tensor
    """The given positions, then the extra ones at which rays begin."""
    levels: Tensor
    rays: Rays | None

    def ordered_roots(self) -> tuple[Tensor | None, Tensor, Tensor]:
        """Return the order of the positions to compute, and the positions and their levels in this order."""
        if self.rays is None:
            order = sort_by_level(self.levels)
        else:
            order = self.rays.roots[self.levels[self.rays.roots].argsort(stable=True)]
        if order is None:
            return None, self.positions, self.levels
        return order, self.positions[order], self.levels[order]


def make_plan(positions: Tensor, generators: Tensor, norms: Tensor, rays: Rays | None) -> Plan:
    """Return how to compute the rotations of positions `[tokens, ndim]`, given bounds on their norms, `[tokens]`."""
    p = POLYNOMIALS[positions.dtype]
    if rays is None:
        return Plan(positions, levels(norms, p), None)
    # For tiny blocks, products along rays cost nearly as much as the exponential.
    if layout_for(generators.shape[-1]) is Rows:
        rays = rays.with_extra(norms / p.radius)
    own = levels(rays.extra.extend(norms), p)
    return Plan(rays.extra.extend(positions), own, rays.for_levels(own))


def _fill(work: Workspace, out: Tensor, generators: Tensor, plan: Plan) -> None:
    """Write rotations `[positions, matrices, b, b]`: the roots, and the products that follow from them."""
    p = POLYNOMIALS[out.dtype]
    roots, positions, own = plan.ordered_roots()
    target = Members(work, out, roots)
    for chunk in cut_chunks(own, work.capacity):
        w = work.begin(chunk)
        _write_skew(work, positions[chunk.members], generators, w.A)
        store_exponentials(work, w, p, chunk, target)
    for derived, left, right in _waves(plan.rays, work):
        product = out[left].flatten(0, 1) @ out[right].flatten(0, 1)
        out.index_copy_(0, derived, product.unflatten(0, (-1, work.each)))


def _written(positions: Tensor, generators: Tensor, large: Tensor) -> Tensor:
    """Return the matrices of the layers and positions selected by a mask, `[n, matrices, b, b]`."""
    layer, token = large.nonzero(as_tuple=True)
    return torch.einsum("nd,ndmij->nmij", positions[token].double(), generators[layer].double())


def _waves(rays: Rays | None, work: Workspace) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    for wave in () if rays is None else rays.waves:
        yield from zip(*(part.split(work.capacity) for part in (wave.target, wave.left, wave.right)), strict=True)


def _write_skew(work: Workspace, positions: Tensor, generators: Tensor, out: Tensor) -> None:
    """Write `sum_d p_d A_d` of positions `[members, ndim]` into a buffer."""
    if work.layout is Columns:
        target = out.unflatten(2, (len(positions), work.each))
        terms = [(p[:, None], A.permute(1, 2, 0)[:, :, None]) for p, A in zip(positions.T, generators, strict=True)]
    else:
        target = out.unflatten(0, (len(positions), work.each))
        terms = [(p[:, None, None, None], A) for p, A in zip(positions.T, generators, strict=True)]
    torch.mul(*terms[0], out=target)
    for term in terms[1:]:
        target.addcmul_(*term)


def _sum_positions(work: Workspace, positions: Tensor, gradient: Tensor, out: Tensor) -> None:
    """Add `sum_t p_td G_t` to the gradient `out` of the generators."""
    if work.layout is Columns:
        by_entry = positions.T @ gradient.reshape(work.size**2, len(positions), work.each)  # [b b, ndim, matrices]
        out.add_(by_entry.permute(1, 2, 0).unflatten(2, (work.size, work.size)))
    else:
        out.flatten(1).addmm_(positions.T, gradient.reshape(len(positions), -1))
