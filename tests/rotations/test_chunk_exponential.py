"""The exponential of one chunk, for any numbers of squarings, in both layouts."""

from __future__ import annotations

import pytest
import torch

from liere.rotations.chunk_exponential import pull_back_chunk, store_exponentials
from liere.rotations.exp_kernels import exp_backward, exp_forward
from liere.rotations.plain import exp_plainly
from liere.rotations.polynomial import POLYNOMIALS
from liere.rotations.squarings import Chunk, Segment, levels, skew_norm
from liere.rotations.workspace import Members, Workspace
from tests.numerics import random_skew


@pytest.mark.parametrize("size", [5, 16])  # elementwise products; torch.bmm
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_members_of_a_chunk_are_squared_as_often_as_they_need(size, dtype):
    X = torch.stack([random_skew(k, size, norm) for k, norm in enumerate((0.1, 3.0, 3.0, 40.0))]).to(dtype)
    X[2] = 0.999 * X[1]
    G = torch.randn(X.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)
    p = POLYNOMIALS[dtype]
    own = levels(skew_norm(X), p).int().tolist()
    assert own[1] == own[2]  # one segment of two members
    assert own[0] < own[1] < own[3]
    chunk = Chunk(slice(0, 4), [Segment(own[0], 0, 1), Segment(own[1], 1, 3), Segment(own[3], 3, 4)])
    work, R = Workspace(X), torch.empty_like(X)
    for gradient in (False, True):
        w = work.begin(chunk)
        Members(work, X, None).load(chunk.members, w.A)
        if gradient:
            dX = torch.empty_like(X)
            Members(work, dX, None).store(chunk.members, pull_back_chunk(work, w, p, chunk, Members(work, G, None)))
        else:
            store_exponentials(work, w, p, chunk, Members(work, R, None))
    wide = X.double().clone().requires_grad_()
    expected = exp_plainly(wide)
    (plain,) = torch.autograd.grad(expected, wide, G.double())
    tolerance = {"rtol": 0, "atol": 3e-4 if dtype == torch.float32 else 1e-11}
    torch.testing.assert_close(R.double(), expected.detach(), **tolerance)
    torch.testing.assert_close((dX - dX.mT).double(), plain - plain.mT, **tolerance)
    torch.testing.assert_close(exp_forward(X), R, **tolerance)
    torch.testing.assert_close(exp_backward(X, G), dX, **tolerance)
