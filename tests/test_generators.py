from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from liere.generators import commutator_norm, rotation_planes, skew_at_positions, skew_from_upper
from tests.numerics import assert_close, norms, random_skew, seeds, tolerance


@given(size=st.integers(1, 9), seed=seeds)
def test_skew_from_upper_fills_row_by_row(size, seed):
    upper = torch.rand(2, size * (size - 1) // 2, generator=torch.Generator().manual_seed(seed))
    A = skew_from_upper(upper, size)
    assert torch.equal(A, -A.mT)
    row, column = torch.triu_indices(size, size, offset=1)
    assert torch.equal(A[:, row, column], upper)


def test_skew_from_upper_refuses_the_wrong_number_of_entries():
    with pytest.raises(ValueError, match="upper has 4 entries, but a 3x3 skew matrix has 3"):
        skew_from_upper(torch.zeros(4), 3)


@given(ndim=st.integers(1, 4), seed=seeds, batch=st.lists(st.integers(1, 3), max_size=2))
def test_write_positions_is_the_sum_over_axes(ndim, seed, batch):
    generator = torch.Generator().manual_seed(seed)
    positions = torch.randn(*batch, 5, ndim, generator=generator, dtype=torch.float64)
    A = torch.randn(ndim, 3, 2, 4, 4, generator=generator, dtype=torch.float64)
    expected = torch.einsum("...td,dhnij->...htnij", positions, A)
    assert_close(skew_at_positions(positions, A), expected, atol=1e-13)


@given(size=st.integers(2, 13), norm=norms, seed=seeds)
def test_rotation_planes_rebuild_the_matrix(size, norm, seed):
    _check_planes(random_skew(seed, size, norm, 2))


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6, 9])
def test_rotation_planes_of_degenerate_matrices(size):
    pair = torch.tensor([[0.0, 2.0], [-2.0, 0.0]], dtype=torch.float64)
    repeated = torch.nn.functional.pad(torch.block_diag(*[pair] * (size // 2)), (0, size % 2, 0, size % 2))
    rank_two = torch.zeros(size, size, dtype=torch.float64)
    rank_two[0, -1], rank_two[-1, 0] = 1e-3, -1e-3
    faint = repeated.clone()
    faint[:2, :2] *= 1e-10  # slow planes are planes too
    _check_planes(torch.stack([torch.zeros_like(repeated), repeated, rank_two, repeated + 1e-9 * rank_two, faint]))


def _check_planes(A: torch.Tensor) -> None:
    angles, basis = rotation_planes(A)
    size = A.shape[-1]
    atol = tolerance(torch.float64, torch.linalg.matrix_norm(A, ord=2).max().item(), units=100)
    assert_close(basis @ basis.mT, torch.eye(size).expand_as(A), atol=1e-13)
    L = torch.zeros_like(A)
    for i in range(size // 2):
        L[..., 2 * i, 2 * i + 1], L[..., 2 * i + 1, 2 * i] = -angles[..., i], angles[..., i]
    assert_close(basis.mT @ L @ basis, A, atol=atol)
    assert (angles.diff(dim=-1) <= 0).all()
    assert (angles >= 0).all()


def test_commutator_norm():
    x, y, z = (skew_from_upper(row, 3) for row in torch.eye(3))
    assert commutator_norm(x, x) == 0
    assert_close(commutator_norm(x, y), torch.tensor(2**0.5 / 2), atol=1e-7)
    assert commutator_norm(x, torch.zeros(3, 3)) == 0
    assert_close(x @ y - y @ x, -z, atol=0)
