"""The exponential of many matrices and its gradient, a cacheful at a time and in buffers that are used again.

Large temporaries cost more than the products: the memory is new each time and the caches are passed by. So the batch is
sorted by how often its members must be squared, and cut into chunks that stay in the cache. The backward pass keeps
nothing: it makes the intermediates of a chunk again, and needs two products for each of the forward pass.

The functions of this file look at values. They run inside operators that `torch.compile` does not look into.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from liere.rotations.buffers import take_buffer
from liere.rotations.layouts import Columns, Layout, Rows, layout_for
from liere.rotations.polynomial import POLYNOMIALS, Polynomial, Powers, evaluate, pull_back
from liere.rotations.rays import Rays
from liere.rotations.scaling import (
    Chunk,
    check_norms,
    cut_chunks,
    levels,
    skew_norm,
    small_squarings,
    sort_by_level,
)

__all__ = [
    "Plan",
    "exp_backward",
    "exp_forward",
    "make_plan",
    "position_norms",
    "positions_backward",
    "positions_forward",
]

# Bytes of a buffer; about fifteen are in use at a time. Elementwise products want longer rows.
ROWS_CHUNK = 2**20
COLUMNS_CHUNK = 2**23
OTHER_DEVICE_CHUNK = 2**26


def exp_forward(X: Tensor) -> Tensor:
    """Return the exponentials of skew matrices `[n, b, b]`."""
    return _exp_sorted(X, gradient=False)


def exp_backward(X: Tensor, G: Tensor) -> Tensor:
    """Return the gradient of `<G, exp(X)>` with respect to `X`."""
    return _exp_sorted(X, G, gradient=True)


def position_norms(positions: Tensor, generators: Tensor) -> Tensor:
    """Return for each layer and position a bound of the norms of its matrices, in host memory.

    Args:
        positions: `[tokens, ndim]`.
        generators: `[layers, ndim, matrices, b, b]`.

    Raises:
        ValueError: If a norm is beyond the ceiling.
    """
    if not positions.numel() or not generators.numel():
        return torch.zeros(generators.shape[0], positions.shape[0])
    # |sum p_d A_d|^2 = sum p_d p_e <A_d, A_e>, elementwise because products may run in TF32; rounding has an allowance.
    flat, ndim = generators.detach().flatten(-2), positions.shape[-1]
    squares = largest = torch.zeros((), dtype=flat.dtype, device=flat.device)
    for d, e in itertools.product(range(ndim), repeat=2):
        inner = (flat[:, d] * flat[:, e]).sum(-1)[:, None]  # [layers, 1, matrices]
        weights = (positions[:, d] * positions[:, e])[:, None]
        squares = squares + weights * inner
        largest = largest + (weights * inner).abs()
    norms = ((squares + 32 * torch.finfo(flat.dtype).eps * largest).clamp(min=0) / 2).sqrt()
    norms = norms.nan_to_num(nan=0.0, posinf=torch.inf).amax(-1).cpu()  # the one time that a device is waited for
    check_norms(norms, lambda large: _written(positions, generators, large))
    return norms


def positions_forward(positions: Tensor, generators: Tensor, norms: Tensor, rays: Rays | None) -> Tensor:
    """Return the rotations `[tokens, matrices, b, b]` of positions `[tokens, ndim]`.

    The sums `X = sum_d p_d A_d` exist only a chunk at a time. Along rays, rotations are products of one another.
    """
    work = _Workspace(generators, generators.shape[1])
    plan = make_plan(positions, generators, norms, rays)
    out = generators.new_empty(len(plan.positions), *generators.shape[1:])
    with _full_precision(work.device):
        _fill(work, out, generators, plan)
    return out[: len(positions)]


def positions_backward(
    G: Tensor, positions: Tensor, generators: Tensor, R: Tensor, norms: Tensor, rays: Rays | None
) -> Tensor:
    """Return the gradient of `<G, R>` with respect to the generators `[ndim, matrices, b, b]`."""
    matrices = generators.shape[1]
    p, work = POLYNOMIALS[positions.dtype], _Workspace(generators, matrices)
    out = torch.zeros_like(generators, memory_format=torch.contiguous_format)
    plan = make_plan(positions, generators, norms, rays)
    extra = len(plan.positions) - len(positions)
    with _full_precision(work.device):
        waves = list(_waves(plan.rays, work))
        if extra and plan.rays is not None:
            R = torch.cat([R, R.new_empty(extra, *R.shape[1:])])
            _fill(_Workspace(generators, matrices), R, generators, plan._replace(rays=plan.rays.of_extra()))
        if waves:
            G = torch.cat([G, G.new_zeros(extra, *G.shape[1:])])
        for derived, left, right in reversed(waves):
            gradient = G[derived].flatten(0, 1)
            G[left] += (gradient @ R[right].flatten(0, 1).mT).unflatten(0, (-1, matrices))
            G[right] += (R[left].flatten(0, 1).mT @ gradient).unflatten(0, (-1, matrices))
        roots, positions, own = plan.ordered_roots()
        gradients = _Members(work, G, roots)
        for chunk in cut_chunks(own, work.capacity):
            w, here = work.begin(chunk), positions[chunk.members]
            _write_positions(work, here, generators, w.A)
            _sum_positions(work, here, _gradient(work, w, p, chunk, gradients), out)
    return out


class Plan(NamedTuple):
    """How rotations of positions are computed."""

    positions: Tensor
    """The given ones, then extra ones that rays begin at."""
    levels: Tensor
    rays: Rays | None

    def ordered_roots(self) -> tuple[Tensor | None, Tensor, Tensor]:
        """Return the order of the positions to compute, the positions and their levels in this order."""
        if self.rays is None:
            order = sort_by_level(self.levels)
        else:
            order = self.rays.roots[self.levels[self.rays.roots].argsort(stable=True)]
        if order is None:
            return None, self.positions, self.levels
        there = order.to(self.positions.device)
        return there, self.positions[there], self.levels[order]


def make_plan(positions: Tensor, generators: Tensor, norms: Tensor, rays: Rays | None) -> Plan:
    """Return how the rotations of positions `[tokens, ndim]` are computed, given bounds of their norms, `[tokens]`."""
    p = POLYNOMIALS[positions.dtype]
    if rays is None:
        return Plan(positions, levels(norms, p), None)
    if (
        layout_for(generators.shape[-1], generators.device) is Rows
    ):  # for tiny blocks, products along rays cost nearly as much as the exponential
        rays = rays.with_extra(norms / p.radius)
    own = levels(rays.extra.extend(norms), p)
    return Plan(rays.extra.extend(positions), own, rays.for_levels(own))


def _fill(work: _Workspace, out: Tensor, generators: Tensor, plan: Plan) -> None:
    """Write rotations `[positions, matrices, b, b]`: the roots, and what follows from them."""
    p = POLYNOMIALS[out.dtype]
    roots, positions, own = plan.ordered_roots()
    target = _Members(work, out, roots)
    for chunk in cut_chunks(own, work.capacity):
        w = work.begin(chunk)
        _write_positions(work, positions[chunk.members], generators, w.A)
        _exponential(work, w, p, chunk, target)
    for derived, left, right in _waves(plan.rays, work):
        product = out[left].flatten(0, 1) @ out[right].flatten(0, 1)
        out.index_copy_(0, derived, product.unflatten(0, (-1, work.each)))


class _Workspace:
    """The buffers of one call, in the layout that suits the matrices.

    Args:
        like: Matrices `[..., b, b]` that say size, type and device.
        each: Matrices a member; members are what chunks are made of.
    """

    def __init__(self, like: Tensor, each: int = 1) -> None:
        self.size, self.each, self.device = like.shape[-1], each, like.device
        self.layout: Layout = layout_for(self.size, like.device)
        chunk = COLUMNS_CHUNK if self.layout is Columns else ROWS_CHUNK
        chunk = chunk if like.device.type == "cpu" else OTHER_DEVICE_CHUNK
        self.capacity = max(1, chunk // max(1, each * self.size**2 * like.element_size()))
        self._like = like
        self._buffers: list[Tensor] = []
        self._used = self._matrices = 0

    def begin(self, chunk: Chunk) -> Powers:
        """Take all buffers back and return those of the polynomial, for a new chunk."""
        self._used, self._matrices = 0, chunk.size * self.each
        return Powers(*(self.buffer() for _ in Powers._fields))

    def buffer(self) -> Tensor:
        """Return a buffer that this chunk does not use yet."""
        if self._used == len(self._buffers):  # the first chunk is the largest
            self._buffers.append(take_buffer(self._used, self.layout.shape(self._matrices, self.size), self._like))
        self._used += 1
        return self._buffers[self._used - 1].narrow(self.layout.axis, 0, self._matrices)

    def rows(self, members: int) -> Tensor:
        """Return a buffer for matrices as rows, which the next call returns again."""
        shape = (members * self.each, self.size, self.size)
        return take_buffer("rows", shape, self._like)

    def part(self, buffer: Tensor, start: int, stop: int | None = None) -> Tensor:
        """Return the matrices of some members of the chunk."""
        stop = self._matrices if stop is None else stop * self.each
        return buffer.narrow(self.layout.axis, start * self.each, stop - start * self.each)


class _Members:
    """The matrices of a tensor `[members, ..., b, b]`, in a given order."""

    def __init__(self, work: _Workspace, tensor: Tensor, order: Tensor | None) -> None:
        self.work, self.tensor, self.order = work, tensor, order

    def load(self, members: slice, out: Tensor) -> None:
        """Copy members into a buffer."""
        if self.order is None:
            out.copy_(self.work.layout.view(self.tensor[members].reshape(-1, *self.tensor.shape[-2:])))
            return
        rows = out if self.work.layout is Rows else self.work.rows(members.stop - members.start)
        torch.index_select(self.tensor, 0, self.order[members], out=rows.view(-1, *self.tensor.shape[1:]))
        if rows is not out:
            out.copy_(self.work.layout.view(rows))

    def store(self, members: slice, buffer: Tensor) -> None:
        """Copy a buffer to members."""
        rows = self.work.layout.rows(buffer)
        if self.order is None:
            self.tensor[members].view(rows.shape).copy_(rows)
        else:
            self.tensor.index_copy_(0, self.order[members], rows.reshape(-1, *self.tensor.shape[1:]))


def _exp_sorted(X: Tensor, *others: Tensor, gradient: bool) -> Tensor:
    p, work = POLYNOMIALS[X.dtype], _Workspace(X)
    norms = skew_norm(X).cpu()
    check_norms(norms, lambda large: X[large.to(X.device)])
    own = levels(norms, p)
    order = sort_by_level(own)
    order = None if order is None else order.to(X.device)
    out = torch.empty_like(X, memory_format=torch.contiguous_format)
    # Tiny matrices go back to their places faster all at once than chunk by chunk.
    final = _inverse(order) if order is not None and work.layout is Columns else None
    target = _Members(work, out, order if final is None else None)
    source, *gradients = (_Members(work, x, order) for x in (X, *others))
    with _full_precision(work.device):
        for chunk in cut_chunks(own, work.capacity):
            w = work.begin(chunk)
            source.load(chunk.members, w.A)
            if gradient:
                target.store(chunk.members, _gradient(work, w, p, chunk, *gradients))
            else:
                _exponential(work, w, p, chunk, target)
    return out if final is None else out.index_select(0, final)


def _inverse(order: Tensor) -> Tensor:
    return torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))


def _exponential(work: _Workspace, w: Powers, p: Polynomial, chunk: Chunk, target: _Members) -> None:
    """Store `exp(X)` of a chunk, given `w.A = X`."""
    layout, small = work.layout, small_squarings(work.size, w.A.dtype)
    p = _scale(work, w.A, p, chunk)
    R, spare = evaluate(layout, w, p, out=work.buffer()), w.A2  # R - I until the small squarings are done
    done = 0
    for level, start, stop in chunk.segments:
        for k in range(done, level):
            active, result = work.part(R, start), work.part(spare, start)
            if k == small:
                layout.diagonal(active).add_(1)
            _square(layout, active, result, small=k < small)
            R, spare = spare, R
        done = level
        finished, first = work.part(R, start, stop), chunk.members.start
        if level <= small:
            layout.diagonal(finished).add_(1)
        target.store(slice(first + start, first + stop), finished)


def _square(layout: Layout, R: Tensor, out: Tensor, *, small: bool) -> None:
    """Write `R R`; or, if small, `2 E + E E`, which is the same for matrices `E = R - I`."""
    layout.product(R, R, out=out)
    if small:
        out.add_(R, alpha=2)


def _gradient(work: _Workspace, w: Powers, p: Polynomial, chunk: Chunk, gradients: _Members) -> Tensor:
    """Return the gradient with respect to `X` of a chunk, given `w.A = X`."""
    layout, part, small = work.layout, work.part, small_squarings(work.size, w.A.dtype)
    p = _scale(work, w.A, p, chunk)
    chain = [evaluate(layout, w, p, out=work.buffer())]
    highest = chunk.segments[-1].level
    for k in range(highest - 1):
        start = next(s.start for s in chunk.segments if s.level > k + 1)
        if k == small:
            layout.diagonal(chain[k]).add_(1)
        chain.append(work.buffer())
        _square(layout, part(chain[k], start), part(chain[k + 1], start), small=k < small)
    for R in chain[:small] if len(chain) > small + 1 else chain:
        layout.diagonal(R).add_(1)
    G, other = work.buffer(), work.buffer()
    lower = [s.level for s in chunk.segments]
    for (level, start, stop), below in zip(reversed(chunk.segments), [*reversed(lower[:-1]), 0], strict=True):
        first = chunk.members.start
        gradients.load(slice(first + start, first + stop), part(G, start, stop))
        for k in range(level - 1, below - 1, -1):  # the gradient of R R is G R^T + R^T G
            transposed, active, result = layout.transpose(part(chain[k], start)), part(G, start), part(other, start)
            layout.product(active, transposed, out=result)
            layout.add_product(result, transposed, active)
            G, other = other, G
    dA = pull_back(layout, w, p, G, [other, work.buffer(), work.buffer(), work.buffer()])
    _scale(work, dA, p, chunk)
    return dA


def _scale(work: _Workspace, buffer: Tensor, p: Polynomial, chunk: Chunk) -> Polynomial:
    """Scale matrices to the lowest level of the chunk, and return the polynomial of that level."""
    lowest = chunk.segments[0].level
    for level, start, stop in chunk.segments[1:]:
        work.part(buffer, start, stop).mul_(2.0 ** (lowest - level))
    return p.of_double(lowest)


def _written(positions: Tensor, generators: Tensor, large: Tensor) -> Tensor:
    """Return the matrices of some layers and positions, `[n, matrices, b, b]`."""
    layer, token = large.to(positions.device).nonzero(as_tuple=True)
    return torch.einsum("nd,ndmij->nmij", positions[token].double(), generators[layer].double())


def _waves(rays: Rays | None, work: _Workspace) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    for wave in () if rays is None else rays.waves:
        yield from zip(*(part.split(work.capacity) for part in (wave.target, wave.left, wave.right)), strict=True)


def _write_positions(work: _Workspace, positions: Tensor, generators: Tensor, out: Tensor) -> None:
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


def _sum_positions(work: _Workspace, positions: Tensor, gradient: Tensor, out: Tensor) -> None:
    """Add `sum_t p_td G_t` to the gradient `out` of the generators."""
    if work.layout is Columns:
        by_entry = positions.T @ gradient.reshape(work.size**2, len(positions), work.each)  # [b b, ndim, matrices]
        out.add_(by_entry.permute(1, 2, 0).unflatten(2, (work.size, work.size)))
    else:
        out.flatten(1).addmm_(positions.T, gradient.reshape(len(positions), -1))


@contextmanager
def _full_precision(device: torch.device) -> Iterator[None]:
    """Keep products from running in half precision, TF32 or bfloat16, which leave a far position no digits.

    The setting is one for the whole process.
    """
    lowered = [setting for setting in _precisions() if setting.value not in (setting.full, "none")]
    with torch.autocast(device.type, enabled=False):
        try:
            for setting in lowered:
                setting.write(setting.full)
            yield
        finally:
            for setting in lowered:
                setting.write(setting.value)


class _Precision(NamedTuple):
    """A setting of torch for products of fp32 matrices."""

    write: Callable[[str], None]
    value: str
    full: str


def _precisions() -> list[_Precision]:
    if not hasattr(torch.backends.cuda.matmul, "fp32_precision"):  # before torch 2.9, one setting for all backends
        return [_Precision(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision(), "highest")]
    backends: list[Any] = [getattr(backend, "matmul", None) for backend in (torch.backends.cuda, torch.backends.mkldnn)]
    return [
        _Precision(functools.partial(setattr, backend, "fp32_precision"), backend.fp32_precision, "ieee")
        for backend in backends
        if hasattr(backend, "fp32_precision")
    ]
