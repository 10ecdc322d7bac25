"""In fp32, values and gradients are as accurate as those of `torch.matrix_exp`, or within two eps."""

from __future__ import annotations

import pytest
import torch

from liere import exp_skew, grid_positions
from liere.generators import skew_at_positions
from liere.rotations import position_rotations
from tests.numerics import exp_by_eigenvectors, random_skew

NORMS = [1e-6, 1e-3, 0.3, 1.0, 2.0, 2.99, 3.01, 7.0, 12.0, 30.0, 100.0, 262.0, 1e3]
TWO_EPS = 2 * torch.finfo(torch.float32).eps


def matrices(kind: str, size: int, norm: float, count: int) -> torch.Tensor:
    if kind == "normal":
        return random_skew(size, size, norm, count)
    # As at initialization: positive above the diagonal, so that one plane rotates much faster than the others.
    upper = torch.rand(count, size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(size)).triu(1)
    X = upper - upper.mT
    return X * (norm / torch.linalg.matrix_norm(X, ord=2))[:, None, None]


def skew_gradient(function, X, G):
    X = X.detach().clone().requires_grad_()
    (gradient,) = torch.autograd.grad(function(X), X, G)
    return (gradient - gradient.mT).double() / 2


@pytest.mark.parametrize("size", [4, 5, 8, 12, 16, 48, 64])
@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_no_worse_than_torchs(size, kind):
    for norm in NORMS:
        X = matrices(kind, size, norm, 64).float()
        exact = exp_by_eigenvectors(X)
        mine, theirs = ((f(X).double() - exact).abs().max().item() for f in (exp_skew, torch.matrix_exp))
        assert mine <= max(1.5 * theirs, TWO_EPS), norm


@pytest.mark.parametrize("size", [4, 5, 8, 12, 32])
@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_gradients_no_worse_than_torchs(size, kind):
    for norm in NORMS:
        X = matrices(kind, size, norm, 64).float()
        G = torch.randn(X.shape, generator=torch.Generator().manual_seed(1))
        G = G / torch.linalg.matrix_norm(G)[:, None, None]
        exact = skew_gradient(torch.matrix_exp, X.double(), G.double())
        mine, theirs = ((skew_gradient(f, X, G) - exact).abs().max().item() for f in (exp_skew, torch.matrix_exp))
        assert mine <= max(1.5 * theirs, TWO_EPS), norm


@pytest.mark.parametrize("size", [4, 8, 16, 64])
@pytest.mark.parametrize("scale", [1e-3, 0.01, 0.1, 1.0, 6.28, 60.0])
def test_layers_no_worse_than_torchs(size, scale):
    """Rotations along rays are products of others, and must not accumulate too large rounding errors."""
    positions, generator = grid_positions((14, 14)), torch.Generator().manual_seed(size)
    A = scale * torch.rand(1, 2, 1, 1, size, size, generator=generator).triu(1)
    (R,) = position_rotations(positions, A - A.mT)
    X = skew_at_positions(positions, (A - A.mT)[0])
    exact = exp_by_eigenvectors(X)
    mine, theirs = ((found.double() - exact).abs().max().item() for found in (R, torch.matrix_exp(X)))
    assert mine <= max(1.5 * theirs, TWO_EPS)


def placed_layer(offset, size, scale):
    """Positions of a grid moved by whole steps, up to 1.75 times its extent, and generators."""
    positions = grid_positions((14, 14)) + torch.tensor(offset) * torch.tensor(1 / 13)
    A = scale * torch.rand(1, 2, 1, 1, size, size, generator=torch.Generator().manual_seed(size)).triu(1)
    return positions, A - A.mT


OFFSETS = [(3, 1), (11, 11), (22, 17)]


@pytest.mark.parametrize("size", [8, 16, 64])
@pytest.mark.parametrize("scale", [0.01, 1.0, 6.28, 60.0])
@pytest.mark.parametrize("offset", OFFSETS)
def test_placed_layers_no_worse_than_torchs(size, scale, offset):
    positions, A = placed_layer(offset, size, scale)
    (R,) = position_rotations(positions, A)
    X = skew_at_positions(positions, A[0])
    exact = exp_by_eigenvectors(X)
    mine, theirs = ((found.double() - exact).abs().max().item() for found in (R, torch.matrix_exp(X)))
    assert mine <= max(1.5 * theirs, TWO_EPS)


@pytest.mark.parametrize("size", [8, 16])
@pytest.mark.parametrize("scale", [0.01, 1.0, 6.28, 60.0])
@pytest.mark.parametrize("offset", OFFSETS)
def test_gradients_of_placed_layers_no_worse_than_torchs(size, scale, offset):
    positions, A = placed_layer(offset, size, scale)
    G = torch.randn(1, 196, 1, size, size, generator=torch.Generator().manual_seed(1))
    G = G / torch.linalg.matrix_norm(G)[..., None, None]

    def plainly(A):
        return torch.matrix_exp(skew_at_positions(positions.to(A.dtype), A[0]))

    exact = skew_gradient(plainly, A.double(), G.double())
    mine = (skew_gradient(lambda A: next(position_rotations(positions, A)), A, G) - exact).abs().max().item()
    theirs = (skew_gradient(plainly, A, G) - exact).abs().max().item()
    # The gradient is a sum over positions, so its tolerance scales with the number and size of the terms.
    assert mine <= max(1.5 * theirs, TWO_EPS * positions.norm().item())


@pytest.mark.parametrize("size", [4, 8, 12, 64])
@pytest.mark.parametrize("norm", [*NORMS, 1e5])
def test_fp64_to_twelve_digits(size, norm):
    X = random_skew(0, size, norm, 4)
    assert (exp_skew(X) - exp_by_eigenvectors(X)).abs().max() <= 1e-12 * max(1, norm)
