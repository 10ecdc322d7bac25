"""Rotations by small angles: the power series of the exponential in the coordinates, as one product of matrices.

`exp(sum_d p_d A_d)` is a power series in the coordinates, whose coefficients are made of products of generators and are
the same for all tokens. Where angles are small, as in a pretrained model whose generators start at zero, few terms
suffice. The rotations of all tokens are then their monomials times the coefficients: one product of large matrices,
which is many times as fast as products of tiny ones for every token, and so is its gradient.
"""

from __future__ import annotations

import functools
import itertools
import math

import torch
from torch import Tensor

from liere.rotations.precision import full_precision
from liere.shapes import Float

__all__ = ["choose_degree", "series_backward", "series_forward"]

DEGREES = range(4, 11)
MAX_TERMS = 70
"""With more, matrix by matrix is as fast. Degree 10 has 66 in 2-D, and degree 5 has 56 in 3-D."""
TOKENS_PER_TERM = 2
"""With fewer tokens, the coefficients would take longer than what they save."""


def choose_degree(positions: Float[Tensor, "tokens ndim"], generators: Float[Tensor, "ndim n b b"]) -> int | None:
    """Return the degree at which the series has the precision of its numbers, or None if it does not pay.

    Gradients are as accurate as values. Angles are bounded by the sum over the axes, so that no large terms cancel.

    Example:
        >>> A = torch.tensor([[0.0, -0.1], [0.1, 0.0]]).expand(2, 1, 2, 2)
        >>> positions = torch.full((100, 2), 0.5)
        >>> choose_degree(positions, A), choose_degree(positions, 100 * A)
        (6, None)
    """
    tokens, ndim = positions.shape
    if positions.device.type != "cpu" or not positions.numel() or not generators.numel():
        return None
    largest = generators.flatten(2).norm(dim=-1).amax(-1) / math.sqrt(2)  # skew matrices have pairs of singular values
    angle = float((positions.abs() @ largest.to(positions)).amax())
    for degree in DEGREES:
        terms = math.comb(ndim + degree, degree)
        if terms > MAX_TERMS or TOKENS_PER_TERM * terms > tokens:
            return None
        if angle**degree / math.factorial(degree) <= torch.finfo(positions.dtype).eps / 2:
            return degree
    return None


def series_forward(
    positions: Float[Tensor, "tokens ndim"], generators: Float[Tensor, "ndim n b b"], degree: int
) -> Float[Tensor, "tokens n b b"]:
    """Return the rotations of positions."""
    _, matrices, size, _ = generators.shape
    terms = torch.cat(_coefficients(generators, degree), dim=2).permute(2, 0, 1, 3).to(positions.dtype)
    with full_precision(positions.device):
        rotations = _monomials(positions, degree).T @ terms.reshape(len(terms), -1)
    return rotations.view(-1, matrices, size, size)


def series_backward(
    G: Float[Tensor, "tokens n b b"],
    positions: Float[Tensor, "tokens ndim"],
    generators: Float[Tensor, "ndim n b b"],
    degree: int,
) -> Float[Tensor, "ndim n b b"]:
    """Return the gradient of `<G, R>` with respect to the generators."""
    ndim, matrices, size, _ = generators.shape
    with full_precision(positions.device):
        of_terms = _monomials(positions, degree) @ G.reshape(len(positions), -1)
    of_terms = of_terms.view(-1, matrices, size, size).permute(1, 2, 0, 3).double()  # as the coefficients
    wide, powers = generators.double(), _coefficients(generators, degree)
    children = _children(ndim, degree)
    gradients = list(of_terms.split([power.shape[2] for power in powers], dim=2))
    out = torch.zeros_like(wide)
    for k in range(degree, 0, -1):
        below = powers[k - 1].flatten(2)
        rest = gradients[k - 1].flatten(2)
        for axis, child in enumerate(children[k - 1]):
            own = gradients[k].index_select(2, child).flatten(2) / k
            out[axis].baddbmm_(own, below.mT)
            rest = torch.baddbmm(rest, wide[axis].mT, own)
        gradients[k - 1] = rest.view_as(powers[k - 1])
    return out.to(generators.dtype)


def _coefficients(generators: Tensor, degree: int) -> list[Tensor]:
    """Return the coefficients of the monomials of each degree, `[n, b, monomials, b]` in fp64.

    Each is a sum over the axes: a generator times the coefficient of the monomial that lacks one factor of that axis.
    """
    ndim, matrices, size, _ = generators.shape
    wide = generators.double()
    found = [torch.eye(size, dtype=wide.dtype)[:, None].expand(matrices, size, 1, size)]
    for k, children in enumerate(_children(ndim, degree), start=1):
        below = found[-1].flatten(2)
        power = wide.new_zeros(matrices, size, int(children[-1][-1]) + 1, size)
        for own, child in zip(wide, children, strict=True):
            power.index_add_(2, child, (own @ below).view(matrices, size, -1, size), alpha=1 / k)
        found.append(power)
    return found


def _monomials(positions: Tensor, degree: int) -> Tensor:
    """Return the monomials of positions `[tokens, ndim]` in ascending order of degrees, `[monomials, tokens]`."""
    columns = positions.T
    found = [torch.ones_like(columns[:1])]
    for children in _children(len(columns), degree):
        power = columns.new_empty(int(children[-1][-1]) + 1, columns.shape[1])
        for column, child in zip(columns, children, strict=True):
            power[child] = column * found[-1]
        found.append(power)
    return torch.cat(found)


@functools.cache
def _children(ndim: int, degree: int) -> list[list[Tensor]]:
    """Return for each degree from 1 on, and each axis, which monomials those of the degree below become, times it."""
    found: list[list[Tensor]] = []
    below: list[tuple[int, ...]] = [()]
    with torch.inference_mode(False):  # they are kept for training, too
        for k in range(1, degree + 1):
            own = list(itertools.combinations_with_replacement(range(ndim), k))
            slots = {axes: slot for slot, axes in enumerate(own)}
            found.append(
                [torch.tensor([slots[tuple(sorted((*axes, axis)))] for axes in below]) for axis in range(ndim)]
            )
            below = own
    return found
