"""Rotating queries and keys by positions without keeping a rotation: they are made, used and dropped chunk by chunk.

Where every token has its own position, as in point clouds and packed batches, a rotation meets one query and one key.
Then rotations of all tokens are far larger than what they rotate, and writing them to memory and reading them again
costs more than making them. The backward pass makes them again.

The functions of this file look at values. They run inside operators that `torch.compile` does not look into.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from liere.rotations.monomials import monomials, monomials_of_degree, pull_back_monomials
from liere.rotations.polynomial import POLYNOMIALS
from liere.rotations.precision import full_precision
from liere.rotations.squarings import check_norms
from liere.rotations.steps import Steps, group_tokens
from liere.rotations.token_chunk import Task, part_factors, pull_back_vectors, rotate_vectors
from liere.rotations.token_layouts import TokenLayout, token_layout_for
from liere.rotations.token_vectors import TokenVectors

__all__ = ["rotate_tokens_backward", "rotate_tokens_forward", "token_norms"]

# Positions whose norms are computed together.
NORMS_CHUNK = 2**14


def token_norms(positions: Tensor, powers: Tensor) -> Tensor:
    """Return for each position `[tokens, ndim]` a bound of the norms of its matrices, `[tokens]`.

    Where axes cancel each other, the powers of the sum are rounded as if they did not: so the bound is at least half of
    what it would be without cancellation.

    Raises:
        ValueError: If a norm is beyond the ceiling.
    """
    if not positions.numel() or not powers.numel():
        return positions.new_zeros(len(positions))
    ndim = positions.shape[-1]
    _, first, second, _ = powers.split(monomials_of_degree(ndim))
    sizes = torch.linalg.matrix_norm(first).flatten(1) / math.sqrt(2)  # [ndim, matrices]
    inner = -second.diagonal(dim1=-2, dim2=-1).sum(-1).flatten(1) / 2  # |X|^2 / 2 is half of the trace of -X^2
    found = []
    for own in positions.split(NORMS_CHUNK):
        weights = monomials(own.T).split(monomials_of_degree(ndim))[2].T
        without_cancellation = own.abs() @ sizes
        squares = (weights @ inner).clamp(min=0) + 32 * torch.finfo(own.dtype).eps * without_cancellation**2
        bounds = torch.maximum(squares.sqrt(), without_cancellation / 2)
        found.append(bounds.nan_to_num(nan=0.0, posinf=torch.inf).amax(1))
    norms = torch.cat(found)
    check_norms(norms, lambda large: torch.einsum("td,d...->t...", positions[large].double(), first.double()))
    return norms


class Plan(NamedTuple):
    """How tokens are rotated."""

    layout: TokenLayout
    coefficients: list[Tensor]
    """Those of the parts, laid out, for each group of blocks."""
    blocks: list[slice]
    """Which blocks a group has."""
    chunks: list[tuple[Steps, Tensor]]
    """Tokens that are computed together, and in which steps."""
    shape: torch.Size
    """Of all coefficients."""

    def tasks(self, steps: Steps, positions: Tensor, size: int) -> Iterator[tuple[int, slice, Task]]:
        """Yield what is to be done for positions `[tokens, ndim]`: one task per group of blocks."""
        values = monomials((positions / steps.scale).T.contiguous())
        for index, (coefficients, blocks) in enumerate(zip(self.coefficients, self.blocks, strict=True)):
            shape = self.layout.matrices(len(positions), blocks.stop - blocks.start, size)
            yield index, blocks, Task(self.layout, coefficients, values, steps, shape)


def make_plan(positions: Tensor, powers: Tensor, vectors: int) -> Plan:
    """Return how the tokens of positions `[tokens, ndim]` are rotated, given how many vectors meet each matrix."""
    blocks, size = powers.shape[-3], powers.shape[-1]
    p, layout = POLYNOMIALS[powers.dtype], token_layout_for(size)
    coefficients = part_factors(p, positions.shape[-1], powers)[..., None, None, None] * powers
    tokens, together = layout.chunk(size, powers.element_size(), blocks)
    slices = [slice(start, min(start + together, blocks)) for start in range(0, blocks, together)]
    chunks = [
        (steps, own)
        for steps, group in group_tokens(token_norms(positions, powers) / p.radius, size, vectors)
        for own in group.split(tokens)
    ]
    laid_out = [layout.lay_out(coefficients[:, :, own]) for own in slices]
    return Plan(layout, laid_out, slices, chunks, coefficients.shape)


def rotate_tokens_forward(xs: list[Tensor], positions: Tensor, powers: Tensor, prefix: int) -> list[Tensor]:
    """Rotate each `x` `[batch, tokens, heads, head_dim]` by positions `[batch or 1, positions, ndim]`.

    Args:
        xs: Tensors of one shape.
        positions: In the type of the powers.
        powers: `generator_powers` of generators, `[monomials, heads or 1, blocks, b, b]`.
        prefix: How many leading tokens have no position.
    """
    vectors = TokenVectors(xs, positions, powers, prefix)
    flat, powers = positions.flatten(0, 1), powers.flatten(1, 2)
    outs = [vectors.unrotated(x) for x in xs]
    with full_precision(positions.device):
        plan = make_plan(flat, powers, vectors.shape.vectors)
        for steps, tokens in plan.chunks:
            memory = vectors.load(plan.layout, "queries", xs, tokens)
            result = vectors.memory(plan.layout, "rotated", tokens)
            for _, blocks, task in plan.tasks(steps, flat[tokens], powers.shape[-1]):
                rotate_vectors(task, plan.layout.vectors(memory, blocks), plan.layout.vectors(result, blocks))
            vectors.store(plan.layout, result, outs, tokens)
    return outs


def rotate_tokens_backward(
    grads: list[Tensor], xs: list[Tensor], positions: Tensor, powers: Tensor, prefix: int, wants_positions: bool
) -> tuple[list[Tensor], Tensor, Tensor]:
    """Return the gradients of the tensors, of positions (empty if not wanted) and of powers."""
    vectors = TokenVectors(xs, positions, powers, prefix)
    flat, matrices = positions.flatten(0, 1), powers.flatten(1, 2)
    outs = [vectors.unrotated(grad) for grad in grads]
    of_positions = torch.zeros_like(flat if wants_positions else flat[:0])
    with full_precision(positions.device):
        plan = make_plan(flat, matrices, vectors.shape.vectors)
        of_coefficients = [torch.zeros_like(own) for own in plan.coefficients]
        for steps, tokens in plan.chunks:
            memory = vectors.load(plan.layout, "queries", xs, tokens)
            given = vectors.load(plan.layout, "gradients", grads, tokens)
            result = vectors.memory(plan.layout, "rotated", tokens)
            for index, blocks, task in plan.tasks(steps, flat[tokens], matrices.shape[-1]):
                of_parts = pull_back_vectors(task, *(plan.layout.vectors(m, blocks) for m in (memory, given, result)))
                plan.layout.add_gradients(of_coefficients[index], of_parts, task.monomials)
                if wants_positions:
                    of_monomials = plan.layout.monomial_gradients(task.coefficients, of_parts)
                    scaled = (flat[tokens] / steps.scale).T
                    of_positions.index_add_(0, tokens, pull_back_monomials(of_monomials, scaled).T / steps.scale)
            vectors.store(plan.layout, result, outs, tokens)
    return outs, of_positions.view(positions.shape if wants_positions else 0), _of_powers(plan, of_coefficients, powers)


def _of_powers(plan: Plan, of_coefficients: list[Tensor], powers: Tensor) -> Tensor:
    total = powers.new_empty(plan.shape)
    for own, blocks in zip(of_coefficients, plan.blocks, strict=True):
        part = total[:, :, blocks]
        part.copy_(plan.layout.take_back(own, part.shape))
    ndim = next(n for n in range(1, len(powers)) if sum(monomials_of_degree(n)) == len(powers))
    factors = part_factors(POLYNOMIALS[powers.dtype], ndim, powers)
    return (factors[..., None, None, None] * total).sum(0).view(powers.shape)
