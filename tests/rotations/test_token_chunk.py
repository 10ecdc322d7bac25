"""The polynomial of a chunk of tokens: its four parts give the exponential."""

from __future__ import annotations

import cmath

import pytest
import torch

from liere.rotations.polynomial import POLYNOMIALS
from liere.rotations.token_chunk import PARTS, part_factors


@pytest.mark.parametrize("number", [0.0, 1e-3, -0.5, 1.0])
def test_the_parts_of_a_number_give_its_exponential(number):
    # The eigenvalues of skew matrices are imaginary, and a 1 x 1 matrix on one axis has its powers as monomials.
    powers = torch.tensor([(1j * number) ** degree for degree in range(4)], dtype=torch.complex128)
    factors = part_factors(POLYNOMIALS[torch.float64], 1, powers.real)
    assert factors.shape == (PARTS, 4)
    B, Q, L, E = (factors.to(powers.dtype) @ powers).tolist()
    Q += B * B
    L += Q
    assert abs(E + L * Q - (cmath.exp(1j * number) - 1)) < 1e-15


def test_monomials_of_one_degree_share_their_factor():
    like = torch.empty(0, dtype=torch.float64)
    one, two = (part_factors(POLYNOMIALS[torch.float64], ndim, like) for ndim in (1, 2))
    assert two.shape == (PARTS, 1 + 2 + 3 + 4)
    assert torch.equal(two, one.repeat_interleave(torch.tensor([1, 2, 3, 4]), dim=1))
