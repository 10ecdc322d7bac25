"""The exponential of one chunk of matrices, by a polynomial and squarings, and its gradient.

The forward pass stores no intermediates: the backward pass recomputes those of a chunk, and then needs two products for
each product of the forward pass.
"""

from __future__ import annotations

from torch import Tensor

from liere.rotations.layouts import Layout
from liere.rotations.polynomial import Polynomial, Powers, evaluate, pull_back
from liere.rotations.squarings import Chunk, small_squarings
from liere.rotations.workspace import Members, Workspace

__all__ = ["pull_back_chunk", "store_exponentials"]


def store_exponentials(work: Workspace, w: Powers, p: Polynomial, chunk: Chunk, target: Members) -> None:
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
    """Write `R R` to `out`; if small, write `2 E + E E`, which is the same for matrices `E = R - I`."""
    layout.product(R, R, out=out)
    if small:
        out.add_(R, alpha=2)


def pull_back_chunk(work: Workspace, w: Powers, p: Polynomial, chunk: Chunk, gradients: Members) -> Tensor:
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


def _scale(work: Workspace, buffer: Tensor, p: Polynomial, chunk: Chunk) -> Polynomial:
    """Scale matrices to the lowest level of the chunk, and return the polynomial of that level."""
    lowest = chunk.segments[0].level
    for level, start, stop in chunk.segments[1:]:
        work.part(buffer, start, stop).mul_(2.0 ** (lowest - level))
    return p.of_double(lowest)
