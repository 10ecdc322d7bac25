"""Powers of `X = sum_d p_d A_d` as polynomials in the coordinates: `X^2 = sum p_d p_e A_d A_e`, and so on.

The products of generators are the same for all tokens. So the powers of all tokens come from one large product of
matrices: the monomials of every token, times the products of generators that belong to them.
"""

from __future__ import annotations

import functools
import itertools

import torch
from torch import Tensor

from liere.shapes import Float

__all__ = ["DEGREE", "generator_powers", "monomials", "monomials_of_degree", "pull_back_monomials"]

DEGREE = 3
"""Highest power that is made this way."""


def _axes(ndim: int) -> list[list[tuple[int, ...]]]:
    """Return the sorted axes of the monomials of each degree: `[()]`, then `[(0,), (1,)]`, and so on."""
    found: list[list[tuple[int, ...]]] = [[()]]
    for _ in range(DEGREE):
        found.append([(*own, axis) for own in found[-1] for axis in range(own[-1] if own else 0, ndim)])
    return found


def monomials_of_degree(ndim: int) -> list[int]:
    """Return how many monomials of each degree there are.

    Example:
        >>> monomials_of_degree(3)
        [1, 3, 6, 10]
    """
    return [len(axes) for axes in _axes(ndim)]


def monomials(positions: Float[Tensor, "ndim tokens"]) -> Float[Tensor, "monomials tokens"]:
    """Return the monomials of positions up to degree 3, in the order of degrees, the constant 1 first.

    Example:
        >>> monomials(torch.tensor([[2.0], [3.0]])).flatten()
        tensor([ 1.,  2.,  3.,  4.,  6.,  9.,  8., 12., 18., 27.])
    """
    found = [torch.ones_like(positions[:1])]
    for rests, lasts in _factors(len(positions)):
        found.append(found[-1][rests] * positions[lasts])
    return torch.cat(found)


def pull_back_monomials(
    gradient: Float[Tensor, "monomials tokens"], positions: Float[Tensor, "ndim tokens"]
) -> Float[Tensor, "ndim tokens"]:
    """Return the gradient with respect to positions, given that with respect to their monomials."""
    ndim = len(positions)
    values = monomials(positions).split(monomials_of_degree(ndim))
    gradients = [part.clone() for part in gradient.split(monomials_of_degree(ndim))]
    out = torch.zeros_like(positions)
    for degree in range(DEGREE, 0, -1):
        rests, lasts = _factors(ndim)[degree - 1]
        out.index_add_(0, lasts.to(out.device), gradients[degree] * values[degree - 1][rests])
        gradients[degree - 1].index_add_(0, rests.to(out.device), gradients[degree] * positions[lasts])
    return out


def generator_powers(generators: Float[Tensor, "ndim *batch b b"]) -> Float[Tensor, "monomials *batch b b"]:
    """Return the matrices `C` of `X^k = sum_a p^a C_a` over the monomials `a` of degree `k`, for `k` from 0 to 3.

    Differentiable. Computed in fp64, since each of them serves all tokens.

    Example:
        >>> A = torch.tensor([[0.0, 2.0], [-2.0, 0.0]])
        >>> generator_powers(A[None]).diagonal(dim1=1, dim2=2)[:, 0] + 0  # no negative zeros
        tensor([ 1.,  0., -4.,  0.])
    """
    ndim, wide = len(generators), generators.double()
    power = torch.eye(generators.shape[-1], dtype=wide.dtype, device=wide.device).expand(1, *wide.shape[1:])
    found: list[Tensor] = [power]
    factors: list[tuple[int, ...]] = [()]
    for own in _axes(ndim)[1:]:
        # All products of so many generators; those that differ in the order of axes alone are added up.
        power = (power[:, None] @ wide).flatten(0, 1)
        factors = [(*axes, axis) for axes in factors for axis in range(ndim)]
        slots = {axes: slot for slot, axes in enumerate(own)}
        order = [slots[tuple(sorted(axes))] for axes in factors]
        total = power.new_zeros(len(slots), *power.shape[1:])
        found.append(total.index_add(0, torch.tensor(order, device=power.device), power))
    return torch.cat(found).to(generators.dtype)


@functools.cache
def _factors(ndim: int) -> list[tuple[Tensor, Tensor]]:
    """Return for each degree from 1 on the monomials as a product: which one of the degree below, times which axis."""
    found = []
    with torch.inference_mode(False):  # they are kept for training, too
        for lower, axes in itertools.pairwise(_axes(ndim)):
            slots = {rest: slot for slot, rest in enumerate(lower)}
            rests, lasts = zip(*((slots[own[:-1]], own[-1]) for own in axes), strict=True)
            found.append((torch.tensor(rests), torch.tensor(lasts)))
    return found
