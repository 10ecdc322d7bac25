"""Skew-symmetric generators: the basis of the Lie algebra in which positions are expressed."""

from __future__ import annotations

import functools
import operator
from typing import NamedTuple

import torch
from torch import Tensor

from liere.errors import InputError
from liere.shapes import Float, Real

__all__ = [
    "RotationPlanes",
    "commutator_norm",
    "init_upper_",
    "rotation_planes",
    "skew_at_positions",
    "skew_from_upper",
]


def init_upper_(upper: Float[Tensor, "*batch entries"], scale: float) -> Float[Tensor, "*batch entries"]:
    """Fill the entries of generators in place with uniform samples from [0, scale), and return them.

    Example:
        >>> upper = init_upper_(torch.empty(2, 28), 3.0)
        >>> bool((upper >= 0).all() and (upper < 3).all())
        True
    """
    with torch.no_grad():
        return upper.uniform_(0, 1).mul_(scale)


def skew_from_upper(upper: Float[Tensor, "*batch entries"], size: int) -> Float[Tensor, "*batch size size"]:
    """Return the skew-symmetric matrices whose strictly upper triangles are `upper`, row by row.

    Example:
        >>> skew_from_upper(torch.tensor([1.0, 2.0, 3.0]), 3)
        tensor([[ 0.,  1.,  2.],
                [-1.,  0.,  3.],
                [-2., -3.,  0.]])
    """
    entries = size * (size - 1) // 2
    if upper.shape[-1] != entries:
        raise InputError(
            f"upper has {upper.shape[-1]} entries, but a {size}x{size} skew matrix has {entries} above its diagonal"
        )
    row, column = torch.triu_indices(size, size, offset=1, device=upper.device)
    triangle = upper.new_zeros(*upper.shape[:-1], size * size).index_copy(-1, row * size + column, upper)
    triangle = triangle.unflatten(-1, (size, size))
    return triangle - triangle.mT


def skew_at_positions(
    positions: Real[Tensor, "*batch tokens ndim"], generators: Float[Tensor, "ndim heads blocks b b"]
) -> Float[Tensor, "*batch heads tokens blocks b b"]:
    """Return the linear combinations of generators given by positions: `X = sum_d p_d A_d`.

    They are computed elementwise rather than as a matrix product: products may run in TF32 or, under autocast, in half
    precision, and the large angles of distant positions need full precision.
    """
    terms = [
        coordinate[..., None, :, None, None, None] * generator[:, None]
        for coordinate, generator in zip(positions.unbind(-1), generators.unbind(0), strict=True)
    ]
    return functools.reduce(operator.add, terms)


def commutator_norm(a: Float[Tensor, "*batch b b"], b: Float[Tensor, "*batch b b"]) -> Float[Tensor, "*batch"]:
    """Return `|AB - BA| / (|A| |B|)` in Frobenius norms: 0 if the generators commute, at most sqrt(2).

    Example:
        >>> a, b = torch.tensor([[0.0, 1.0], [-1.0, 0.0]]), torch.tensor([[0.0, 3.0], [-3.0, 0.0]])
        >>> commutator_norm(a, b)
        tensor(0.)
    """
    size = torch.linalg.matrix_norm(a) * torch.linalg.matrix_norm(b)
    norm = torch.linalg.matrix_norm(a @ b - b @ a)
    return torch.where(size > 0, norm / torch.where(size > 0, size, 1), 0)


class RotationPlanes(NamedTuple):
    """A skew matrix, decomposed into rotations in orthogonal planes: `A = basis.mT @ L @ basis`.

    `L` has a diagonal block `[[0, -w], [w, 0]]` for each of the `angles` w >= 0, in descending order, then zeros.
    """

    angles: Tensor  # [*batch, b // 2]
    basis: Tensor  # [*batch, b, b], orthogonal; rows 2i and 2i + 1 span plane i


def rotation_planes(skew: Float[Tensor, "*batch b b"]) -> RotationPlanes:
    """Decompose skew-symmetric matrices into orthogonal planes and their rotation angles.

    The computation runs in fp64, without gradients.

    Example:
        >>> planes = rotation_planes(torch.tensor([[0.0, 2.0], [-2.0, 0.0]]))
        >>> planes.angles
        tensor([2.], dtype=torch.float64)
    """
    skew = skew.detach().to(torch.float64)
    size = skew.shape[-1]
    pairs = size // 2
    # i A is Hermitian. An eigenvector x + iy with eigenvalue w > 0 satisfies A x = w y and A y = -w x: a plane.
    values, vectors = torch.linalg.eigh(1j * skew)
    angles = values[..., size - pairs :].flip(-1).clamp(min=0)
    planes = vectors[..., size - pairs :].flip(-1)
    basis = torch.stack([planes.real, planes.imag], dim=-1).flatten(-2).mT * 2**0.5
    # If the angle is 0, real and imaginary parts need not span a plane: any orthonormal completion is valid.
    norm = torch.linalg.matrix_norm(skew)[..., None]
    turns = angles > 1e-12 * norm
    basis = basis * turns.repeat_interleave(2, dim=-1)[..., None]
    return RotationPlanes(torch.where(turns, angles, 0), _complete_basis(basis, size))


def _complete_basis(rows: Tensor, size: int) -> Tensor:
    """Replace the zero rows and add the missing ones, so that the rows form an orthonormal basis."""
    rows = torch.cat([rows, rows.new_zeros(*rows.shape[:-2], size - rows.shape[-2], size)], dim=-2)
    missing = rows.abs().amax(-1) == 0
    # The directions not spanned by the given rows have eigenvalue 0 in their Gram matrix: the first `missing` ones.
    _, directions = torch.linalg.eigh(rows.mT @ rows)
    rank = (missing.cumsum(-1) - 1).clamp(min=0)
    fill = directions.mT.gather(-2, rank[..., None].expand_as(rows))
    rows = torch.where(missing[..., None], fill, rows)
    # Projecting to the nearest orthogonal matrix removes the remaining rounding errors.
    left, _, right = torch.linalg.svd(rows)
    return left @ right
