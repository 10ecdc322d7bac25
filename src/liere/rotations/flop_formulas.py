"""FLOP formulas of this library's operators for torch's FLOP counter."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from liere.rotations import operators, token_operator  # noqa: F401  (they define them)
from liere.rotations.polynomial import POLYNOMIALS, PRODUCTS
from liere.rotations.position_kernels import make_plan, position_norms
from liere.rotations.rays import Rays, find_rays
from liere.rotations.series import choose_degree
from liere.rotations.squarings import levels, max_level, skew_norm
from liere.rotations.token_chunk import PARTS
from liere.rotations.token_kernels import make_plan as make_token_plan
from liere.rotations.token_vectors import TokenVectors

__all__: list[str] = []

_FORWARD, _BACKWARD = (lambda products: products), (lambda products: 3 * products - 1)
"""The backward pass repeats all products except the last one, and adds two for each product."""

_ROTATE = [torch.ops.liere.rotate, torch.ops.liere.rotate_each, torch.ops.liere.rotate_planes]
_ROTATE_BACKWARD = [
    torch.ops.liere.rotate_backward,
    torch.ops.liere.rotate_each_backward,
    torch.ops.liere.rotate_planes_backward,
]


def _exp_products(X: Tensor, count: Any) -> int:
    if X.device.type != "cpu":
        return X.shape[:-2].numel() * count(_device_products(X))
    own = levels(skew_norm(X), POLYNOMIALS[X.dtype]) + PRODUCTS
    return int(count(own).sum())


def _position_flops(positions: Tensor, generators: Tensor, backward: bool) -> int:
    degree = choose_degree(positions, generators) if positions.device.type == "cpu" else None
    if degree is None:
        return 2 * generators.shape[-1] ** 3 * _position_products(positions, generators, backward)
    # Every term times every token; and for each term below the highest degree, a product with each generator.
    (tokens, ndim), (_, matrices, size, _) = positions.shape, generators.shape
    terms, below = math.comb(ndim + degree, degree), math.comb(ndim + degree - 1, degree - 1)
    products = ndim * below * (3 if backward else 1)
    return 2 * matrices * (tokens * terms * size**2 + products * size**3)


def _position_products(positions: Tensor, generators: Tensor, backward: bool) -> int:
    if positions.device.type != "cpu":
        each = (_BACKWARD if backward else _FORWARD)(_device_products(generators))
        return positions.shape[0] * generators.shape[1] * each
    norms = position_norms(positions, generators[None])[0]
    plan = make_plan(positions, generators, norms, find_rays(positions))
    own = plan.levels + PRODUCTS
    if plan.rays is None:
        return generators.shape[1] * int((_BACKWARD if backward else _FORWARD)(own).sum())
    products = _ray_products(plan.rays, own, *((_BACKWARD, 2) if backward else (_FORWARD, 1)))
    if backward:  # extra rotations are recomputed
        products += _ray_products(plan.rays.of_extra(), own, _FORWARD, 1)
    return generators.shape[1] * products


def _device_products(matrices: Tensor) -> int:
    """Return the products for each matrix on devices other than the CPU, where all are squared equally often."""
    return PRODUCTS + max_level(matrices.shape[-1], matrices.dtype)


def _ray_products(rays: Rays, own: Tensor, count: Any, derived: int) -> int:
    return int(count(own[rays.roots]).sum()) + derived * sum(len(wave.target) for wave in rays.waves)


@register_flop_formula(torch.ops.liere.exp_skew, get_raw=True)
def _(X: Tensor, *, out_val: Any = None) -> int:
    return 2 * X.shape[-1] ** 3 * _exp_products(X, _FORWARD)


@register_flop_formula(torch.ops.liere.exp_skew_backward, get_raw=True)
def _(X: Tensor, grad: Tensor, *, out_val: Any = None) -> int:
    return 2 * X.shape[-1] ** 3 * _exp_products(X, _BACKWARD)


@register_flop_formula(torch.ops.liere.rotations, get_raw=True)
def _(positions: Tensor, generators: Tensor, norms: Any, *, out_val: Any = None) -> int:
    return _position_flops(positions, generators, backward=False)


@register_flop_formula(torch.ops.liere.rotations_backward, get_raw=True)
def _(
    grad: Tensor, positions: Tensor, generators: Tensor, rotations: Tensor, norms: Any, *, out_val: Any = None
) -> int:
    return _position_flops(positions, generators, backward=True)


@register_flop_formula(_ROTATE, get_raw=True)
def _(xs: list[Tensor], rotations: Tensor, prefix: int, *, out_val: Any = None) -> int:
    return _rotate_flops(xs, rotations)


@register_flop_formula(_ROTATE_BACKWARD, get_raw=True)
def _(
    grads: list[Tensor], xs: list[Tensor], rotations: Tensor, prefix: int, wants_rotations: bool, *, out_val: Any = None
) -> int:
    return _rotate_flops(xs, rotations) * (2 if wants_rotations else 1)


def _rotate_flops(xs: list[Tensor], rotations: Tensor) -> int:
    """Return two operations for each matrix entry that is multiplied by a vector entry."""
    positions, blocks, size, _ = rotations.shape[-4:]
    return 2 * sum(x.shape[:-2].numel() for x in xs) * positions * blocks * size**2


@register_flop_formula(torch.ops.liere.rotate_tokens, get_raw=True)
def _(xs: list[Tensor], positions: Tensor, powers: Tensor, prefix: int, *, out_val: Any = None) -> int:
    return _token_flops(xs, positions, powers, prefix, backward=False)


@register_flop_formula(torch.ops.liere.rotate_tokens_backward, get_raw=True)
def _(
    grads: list[Tensor],
    xs: list[Tensor],
    positions: Tensor,
    powers: Tensor,
    prefix: int,
    wants_positions: bool,
    *,
    out_val: Any = None,
) -> int:
    return _token_flops(xs, positions, powers, prefix, backward=True)


def _token_flops(xs: list[Tensor], positions: Tensor, powers: Tensor, prefix: int, backward: bool) -> int:
    """Two for each entry of each product: of monomials, of matrices, and of matrices with vectors.

    The backward pass does as the forward pass, but for the last step, and takes two products for each.
    """
    vectors, size = TokenVectors(xs, positions, powers, prefix).shape.vectors, powers.shape[-1]
    total = 0
    for steps, tokens in make_token_plan(positions.flatten(0, 1), powers.flatten(1, 2), vectors).chunks:
        parts, products, columns = PARTS * len(powers), 2 + steps.squarings, vectors * steps.steps
        if backward:
            parts, products, columns = 2 * parts, 3 * products, 3 * columns - vectors
        total += len(tokens) * (parts + products * size + columns)
    return 2 * size**2 * powers.shape[1:3].numel() * total
