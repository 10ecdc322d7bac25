from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from liere.generators import skew_at_positions
from liere.rotations.monomials import generator_powers, monomials, monomials_of_degree, pull_back_monomials
from tests.numerics import assert_close, random_skew, seeds


@given(ndim=st.integers(1, 5), tokens=st.integers(0, 4), size=st.integers(1, 5), seed=seeds)
def test_powers_of_all_tokens_come_from_monomials(ndim, tokens, size, seed):
    A = random_skew(seed, size, 1.0, ndim, 2)
    positions = torch.randn(tokens, ndim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    X = skew_at_positions(positions, A[:, None])[0]  # [tokens, 2, b, b]
    counts = monomials_of_degree(ndim)
    parts = zip(monomials(positions.T).split(counts), generator_powers(A).split(counts), strict=True)
    for degree, (values, powers) in enumerate(parts):
        found = torch.einsum("mt,mnij->tnij", values, powers)
        assert_close(found, torch.linalg.matrix_power(X, degree), 1e-12)


def test_each_monomial_occurs_once():
    values = monomials(torch.tensor([[2.0], [3.0], [5.0]])).flatten().tolist()
    expected = [
        torch.tensor([2.0, 3.0, 5.0])[list(axes)].prod().item()
        for degree in range(4)
        for axes in itertools.combinations_with_replacement(range(3), degree)
    ]
    assert values == expected


@pytest.mark.parametrize("ndim", [1, 2, 3, 5])
def test_gradients_of_positions_and_generators(ndim):
    positions = torch.randn(ndim, 4, dtype=torch.float64, requires_grad=True)
    G = torch.randn(sum(monomials_of_degree(ndim)), 4, dtype=torch.float64)
    (expected,) = torch.autograd.grad(monomials(positions), positions, G)
    assert_close(pull_back_monomials(G, positions.detach()), expected, 1e-12)
    assert torch.autograd.gradcheck(generator_powers, random_skew(0, 3, 1.0, min(ndim, 2), 1).requires_grad_())
