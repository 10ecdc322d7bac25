"""Vectors of one chunk of tokens, rotated by exponentials that exist only here, and their gradients.

The polynomial is that of `polynomial`. All that it takes of the first three powers is made from monomials at once, in
four parts, so that two products of matrices are left:

    B, Q0, L0, E0 = parts
    Q = Q0 + B B
    L = L0 + Q
    exp(A) - I = E0 + L Q
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from liere.rotations.buffers import take_buffer
from liere.rotations.monomials import monomials_of_degree
from liere.rotations.polynomial import Polynomial
from liere.rotations.squarings import small_squarings
from liere.rotations.steps import Steps
from liere.rotations.token_layouts import TokenLayout

__all__ = ["PARTS", "Task", "part_factors", "pull_back_vectors", "rotate_vectors"]

PARTS = 4


def part_factors(p: Polynomial, ndim: int, like: Tensor) -> Tensor:
    """Return by what the monomials `[parts, monomials]` of the parts are to be multiplied."""
    by_degree = torch.tensor(
        [
            [0, p.b1, p.b2, p.b3],
            [0, p.q3 * p.b1, p.q2 + p.q3 * p.b2, p.q3 * p.b3],
            [p.l0, p.l1 + p.l3 * p.b1, p.l2 + p.l3 * p.b2, p.l3 * p.b3],
            [0, p.e1 + p.e3 * p.b1, p.e2 + p.e3 * p.b2, p.e3 * p.b3],
        ],
        dtype=like.dtype,
        device=like.device,
    )
    counts = torch.tensor(monomials_of_degree(ndim), device=like.device)
    return by_degree.repeat_interleave(counts, dim=1)


class Task(NamedTuple):
    """What is known of a chunk."""

    layout: TokenLayout
    coefficients: Tensor
    """Those of the parts, laid out."""
    monomials: Tensor
    """Of positions that are divided by the scale of the steps, `[monomials, tokens]`."""
    steps: Steps
    shape: tuple[int, ...]
    """Of the matrices."""

    def buffer(self, name: str) -> Tensor:
        """Return memory for matrices."""
        return take_buffer(f"token {name}", self.shape, self.monomials)

    def four_buffers(self, name: str) -> Tensor:
        """Return memory for the matrices of all parts."""
        return take_buffer(f"token {name}", (PARTS, *self.shape), self.monomials)

    @property
    def size(self) -> int:
        """Size of a matrix."""
        return self.shape[-1] if self.layout.axis == 0 else self.shape[0]


def rotate_vectors(task: Task, vectors: Tensor, out: Tensor) -> None:
    """Write the rotated vectors into `out`."""
    layout = task.layout
    parts, R = _exponential(task)
    small = small_squarings(task.size, R.dtype)
    spare = parts[0]
    for k in range(task.steps.squarings):
        if k == small:
            layout.diagonal(R).add_(1)
        _square(layout, R, spare, small=k < small)
        R, spare = spare, R
    if task.steps.squarings <= small:
        layout.diagonal(R).add_(1)
    for step in range(task.steps.steps):
        last = step == task.steps.steps - 1
        target = out if last else take_buffer(f"token step {step % 2}", tuple(vectors.shape), vectors)
        vectors = layout.product(R, vectors, out=target)


def pull_back_vectors(task: Task, vectors: Tensor, gradients: Tensor, out: Tensor) -> Tensor:
    """Write the gradients of the vectors into `out`, and return those of the parts, given those of rotated vectors."""
    layout, transpose, (squarings, steps) = task.layout, task.layout.transpose, task.steps
    parts, E = _exponential(task)
    chain = _squares(task, E)
    R, of_parts, other = chain[-1], task.four_buffers("gradients"), task.buffer("other")
    seen = [vectors]
    for step in range(steps - 1):
        target = take_buffer(f"token step {step}", tuple(vectors.shape), vectors)
        seen.append(layout.product(R, seen[-1], out=target))
    # Each squaring moves the gradient to the other buffer; at the end it is in its place.
    G, other = (of_parts[3], other) if squarings % 2 == 0 else (other, of_parts[3])
    for step in reversed(range(steps)):
        if step == steps - 1:
            layout.product(gradients, transpose(seen[step]), out=G)
        else:
            layout.add_product(G, gradients, transpose(seen[step]))
        target = out if step == 0 else take_buffer(f"token back {step % 2}", tuple(vectors.shape), vectors)
        gradients = layout.product(transpose(R), gradients, out=target)
    for R in reversed(chain[:-1]):  # the gradient of R R is G R^T + R^T G
        layout.product(G, transpose(R), out=other)
        layout.add_product(other, transpose(R), G)
        G, other = other, G
    _pull_back_parts(layout, parts, of_parts)
    return of_parts


def _exponential(task: Task) -> tuple[Tensor, Tensor]:
    """Return the parts, of which two are now `Q` and `L`, and `exp(A) - I`, in the memory of the fourth."""
    parts = task.four_buffers("parts")
    task.layout.write_parts(task.coefficients, task.monomials, parts)
    B, Q, L, E = parts.unbind()
    task.layout.add_product(Q, B, B)
    L.add_(Q)
    return parts, task.layout.add_product(E, L, Q)


def _squares(task: Task, E: Tensor) -> list[Tensor]:
    """Return `exp(A)` and what repeated squaring makes of it, given `exp(A) - I`."""
    layout, small = task.layout, small_squarings(task.size, E.dtype)
    chain = [E]
    for k in range(task.steps.squarings):
        if k == small:
            layout.diagonal(chain[k]).add_(1)
        chain.append(task.buffer(f"square {k}"))
        _square(layout, chain[k], chain[k + 1], small=k < small)
    for R in chain[:small] if len(chain) > small + 1 else chain:
        layout.diagonal(R).add_(1)
    return chain


def _square(layout: TokenLayout, R: Tensor, out: Tensor, *, small: bool) -> None:
    """Write `R R`; or, if small, `2 E + E E`, which is the same for matrices `E = R - I`."""
    layout.product(R, R, out=out)
    if small:
        out.add_(R, alpha=2)


def _pull_back_parts(layout: TokenLayout, parts: Tensor, gradients: Tensor) -> None:
    """Write the gradients of the parts, given that of the fourth."""
    (B, Q, L, _), (dB, dQ, dL, dE), transpose = parts.unbind(), gradients.unbind(), layout.transpose
    layout.product(dE, transpose(Q), out=dL)
    dQ.copy_(dL)
    layout.add_product(dQ, transpose(L), dE)
    layout.product(dQ, transpose(B), out=dB)
    layout.add_product(dB, transpose(B), dQ)
