"""Rotations by small angles, as one product of monomials and coefficients."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from liere import grid_positions
from liere.generators import skew_at_positions
from liere.rotations import operators, position_rotations
from liere.rotations.series import DEGREES, choose_degree, series_backward, series_forward
from tests.numerics import assert_close, exp_by_eigenvectors, random_skew, seeds, tolerance

angles = st.sampled_from([0.0, 1e-4, 0.01, 0.1, 0.4, 0.8])


def case(seed: int, ndim: int, size: int, angle: float, tokens: int = 140) -> tuple[torch.Tensor, torch.Tensor]:
    """Return positions and generators in fp64 whose largest angle is about the given one."""
    positions = 2 * torch.rand(tokens, ndim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) - 1
    A = random_skew(seed, size, 1.0, ndim, 3)
    bound = A.flatten(2).norm(dim=-1).amax(-1) / math.sqrt(2)
    return positions, A * (angle / (positions.abs() @ bound).amax())


@settings(max_examples=30)
@given(ndim=st.integers(1, 3), size=st.sampled_from([2, 3, 8, 9]), angle=angles, seed=seeds)
def test_values_and_gradients_agree_with_the_exponential(ndim, size, angle, seed):
    positions, A = (x.float() for x in case(seed, ndim, size, angle))
    degree = choose_degree(positions, A)
    if degree is None:
        assert ndim > 2 or angle > 0.7
        return
    wide = A.double().requires_grad_()
    X = skew_at_positions(positions.double(), wide[:, None])[0]
    G = torch.randn(X.shape, generator=torch.Generator().manual_seed(seed))
    assert_close(series_forward(positions, A, degree), exp_by_eigenvectors(X.detach()), tolerance(torch.float32, angle))
    (expected,) = torch.autograd.grad(torch.matrix_exp(X), wide, G.double())
    found = series_backward(G, positions, A, degree).double()
    largest = expected.abs().max().item() + math.sqrt(len(positions))
    assert_close((found - found.mT) / 2, (expected - expected.mT) / 2, tolerance(torch.float32) * largest)


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_in_double_precision(ndim):
    positions, A = case(0, ndim, 8, 0.02 if ndim < 3 else 1e-3)
    degree = choose_degree(positions, A)
    assert degree is not None
    X = skew_at_positions(positions, A[:, None])[0]
    assert_close(series_forward(positions, A, degree), torch.matrix_exp(X), tolerance(torch.float64))


@pytest.mark.parametrize("degree", DEGREES)
def test_each_degree_is_used_as_far_as_it_is_accurate(degree):
    radius = (math.factorial(degree) * torch.finfo(torch.float32).eps / 2) ** (1 / degree)
    positions, A = (x.float() for x in case(1, 2, 4, 0.999 * radius))
    assert choose_degree(positions, A) == degree
    assert choose_degree(positions, 1.002 * A) == (degree + 1 if degree < DEGREES[-1] else None)


def test_where_it_does_not_pay_or_would_cancel():
    positions, A = (x.float() for x in case(2, 2, 4, 0.4))
    assert choose_degree(positions, A) is not None
    assert choose_degree(positions[:40], A) is None, "few tokens"
    assert choose_degree(positions, 100 * A) is None, "large angles"
    assert choose_degree(positions[:0], A) is None
    assert choose_degree(positions, A * torch.nan) is None
    canceling = torch.stack([100 * A[0], -100 * A[0]])
    same = positions[:, :1].expand(-1, 2)
    assert not skew_at_positions(same, canceling[:, None]).any()
    assert choose_degree(same, canceling) is None, "large terms that cancel"


@pytest.mark.parametrize("layers", [1, 3])
def test_rotations_of_layers_take_it(layers, monkeypatch):
    positions = grid_positions((12, 12))
    A = random_skew(3, 8, 0.1, layers, 2, 2, 2).float().requires_grad_()

    def run():
        rotations = torch.stack(list(position_rotations(positions, A)))
        (gradient,) = torch.autograd.grad((rotations * weights).sum(), A)
        return rotations, gradient - gradient.mT

    weights = torch.randn(layers, 2, 144, 2, 8, 8)
    with FlopCounterMode(display=False) as counter:
        found = run()
    degree = choose_degree(positions, A.detach().transpose(0, 1).flatten(1, 3))
    terms, below = math.comb(degree + 2, 2), math.comb(degree + 1, 2)
    # Each term for every token, forward and backward; and products of generators, once forward and thrice backward.
    assert counter.get_total_flops() == 2 * layers * 4 * (2 * 144 * terms * 8**2 + 4 * 2 * below * 8**3)
    monkeypatch.setattr(operators, "choose_degree", lambda *given: None)
    expected = run()
    for one, other in zip(found, expected, strict=True):
        assert not torch.equal(one, other)
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_second_derivatives():
    positions = grid_positions((12, 12), dtype=torch.float64)
    A = random_skew(4, 4, 0.003, 1, 2, 1, 1).requires_grad_()
    assert choose_degree(positions, A.detach()[0, :, 0]) is not None
    weights = torch.randn(144, 4, 4, dtype=torch.float64)

    def gradient(A):
        (R,) = position_rotations(positions, A - A.mT)
        return torch.autograd.grad((R * weights[None, :, None]).sum(), A, create_graph=True)[0]

    found = torch.autograd.grad(gradient(A).square().sum(), A)[0]
    step = 1e-6 * torch.randn_like(A)
    with torch.enable_grad():
        difference = gradient(A + step).square().sum() - gradient(A - step).square().sum()
    assert abs(difference / 2 - (found * step).sum()) < 1e-6 * abs(difference)
