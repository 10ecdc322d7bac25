from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from liere import exp_skew
from liere.generators import skew_from_upper
from liere.rotations import exp_products, position_rotations
from liere.rotations.layouts import Columns, Rows
from tests.numerics import (
    BLOCK_SIZES,
    assert_close,
    block_sizes,
    dtypes,
    exp_by_eigenvectors,
    norms,
    random_skew,
    seeds,
    tolerance,
)


@given(size=block_sizes, norm=norms, dtype=dtypes, seed=seeds)
def test_is_a_rotation(size, norm, dtype, seed):
    R = exp_skew(random_skew(seed, size, norm, 3).to(dtype))
    atol = tolerance(dtype, norm, units=20)  # the error of R counts twice
    assert_close(R @ R.mT, torch.eye(size).expand_as(R), atol)
    assert_close(torch.linalg.det(R.double()), torch.ones(3), atol * size)
    assert R.dtype == dtype


@given(size=block_sizes, norm=norms, dtype=dtypes, seed=seeds)
def test_agrees_with_eigenvectors(size, norm, dtype, seed):
    X = random_skew(seed, size, norm, 3).to(dtype)
    # The reference is exact for fp32; in fp64 its own error counts.
    assert_close(exp_skew(X), exp_by_eigenvectors(X), tolerance(dtype, norm, units=4 if dtype == torch.float32 else 20))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("angle", [0.25, 0.4999, 0.5, 0.9999, 3.0, 63.99])
def test_the_polynomial_is_long_enough(dtype, angle):
    """One rotating plane in 5 dimensions, at the largest norm for the polynomial, has a known exponential."""
    X, R = torch.zeros(5, 5, dtype=dtype), torch.eye(5, dtype=torch.float64)
    X[1, 3], X[3, 1] = angle, -angle
    exact = X[1, 3].double()
    R[1, 1] = R[3, 3] = exact.cos()
    R[1, 3], R[3, 1] = exact.sin(), -exact.sin()
    assert_close(exp_skew(X), R, tolerance(dtype, angle, units=2))


@given(size=block_sizes, norm=norms, seed=seeds)
def test_agrees_with_scipy(size, norm, seed):
    linalg = pytest.importorskip("scipy.linalg")
    X = random_skew(seed, size, norm)
    # scipy's own error reaches 40 units at norm 1e3, where b = 2 shows it against cosine and sine.
    assert_close(exp_skew(X), torch.from_numpy(linalg.expm(X.numpy())), tolerance(torch.float64, norm, units=100))


@given(size=block_sizes, norm=norms, dtype=dtypes, seed=seeds)
def test_negation_is_transposition(size, norm, dtype, seed):
    X = random_skew(seed, size, norm).to(dtype)
    assert_close(exp_skew(-X), exp_skew(X).mT, tolerance(dtype, norm))


@given(size=block_sizes, norm=norms, dtype=dtypes, seed=seeds, s=st.floats(-1, 1), t=st.floats(-1, 1))
def test_is_a_one_parameter_group(size, norm, dtype, seed, s, t):
    X = random_skew(seed, size, norm).to(dtype)
    assert_close(exp_skew(s * X) @ exp_skew(t * X), exp_skew((s + t) * X), tolerance(dtype, norm))


@pytest.mark.parametrize("size", BLOCK_SIZES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_zero_gives_the_identity_exactly(size, dtype):
    assert torch.equal(
        exp_skew(torch.zeros(2, size, size, dtype=dtype)), torch.eye(size, dtype=dtype).expand(2, -1, -1)
    )


@pytest.mark.parametrize("size", BLOCK_SIZES)
def test_small_rotations_keep_their_digits(size):
    """For tiny X, exp(X) - I is X to many digits; squaring I + X instead would lose them."""
    X = random_skew(0, size, 1e-30).float()
    off_diagonal = ~torch.eye(size, dtype=torch.bool)
    torch.testing.assert_close(exp_skew(X)[off_diagonal], X[off_diagonal], rtol=1e-6, atol=0)


@given(size=block_sizes, seed=seeds, exponents=st.lists(st.integers(-6, 3), min_size=2, max_size=5))
def test_each_matrix_of_a_mixed_batch_is_as_good_as_alone(size, seed, exponents):
    X = torch.stack([random_skew(seed, size, 10.0**k) for k in exponents]).float()
    together, alone = exp_skew(X), torch.stack([exp_skew(x) for x in X])
    for a, b, k in zip(together, alone, exponents, strict=True):
        assert_close(a, b, tolerance(torch.float32, 10.0**k))


@pytest.mark.parametrize("size", [2, 3, 4, 5, 8, 12])
@pytest.mark.parametrize("norm", [0.0, 1e-3, 0.99, 1.01, 20.0])
def test_gradients_through_the_upper_triangle(size, norm):
    entries = size * (size - 1) // 2
    direction = torch.randn(2, entries, dtype=torch.float64, generator=torch.Generator().manual_seed(size))
    upper = (norm * direction / direction.norm(dim=-1, keepdim=True)).requires_grad_()
    assert torch.autograd.gradcheck(lambda u: exp_skew(skew_from_upper(u, size)), upper)
    if size <= 4:
        assert torch.autograd.gradgradcheck(lambda u: exp_skew(skew_from_upper(u, size)), upper)


@given(size=block_sizes, norm=norms, seed=seeds)
def test_fp32_gradients_agree_with_fp64(size, norm, seed):
    X = random_skew(seed, size, norm).requires_grad_()
    G = torch.randn(size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    G = G / G.norm()
    (wide,) = torch.autograd.grad(exp_skew(X), X, G)
    low = X.detach().float().requires_grad_()
    (narrow,) = torch.autograd.grad(exp_skew(low), low, G.float())
    assert_close(narrow - narrow.mT, wide - wide.mT, tolerance(torch.float32, norm, units=20))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_fp32(dtype):
    X = random_skew(0, 8, 20.0, 4).to(dtype)
    assert torch.equal(exp_skew(X), exp_skew(X.float()).to(dtype))


@pytest.mark.parametrize("size", [2, 3, 8])
def test_autocast_does_not_lower_the_precision(size):
    X = random_skew(0, size, 20.0, 4).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        R = exp_skew(X)
    assert R.dtype == torch.float32
    assert torch.equal(R, exp_skew(X))


def test_shapes_without_elements_and_batches_of_many_axes():
    assert exp_skew(torch.zeros(0, 5, 5)).shape == (0, 5, 5)
    assert exp_skew(torch.zeros(2, 0, 0)).shape == (2, 0, 0)
    assert exp_skew(torch.zeros(2, 3, 1, 1)).eq(1).all()
    X = random_skew(0, 5, 3.0, 2, 3, 4)
    assert_close(exp_skew(X)[1, 2, 3], exp_skew(X[1, 2, 3]), 1e-15)


def test_values_that_are_not_numbers_stay_visible():
    X = random_skew(0, 5, 3.0, 2)
    X[0, 1, 0] = torch.nan
    R = exp_skew(X)
    assert R[0].isnan().any()
    assert_close(R[1], exp_skew(X[1]), 1e-15)


def test_vmap_agrees_with_a_batch():
    X = random_skew(0, 6, 5.0, 3, 2)
    assert_close(torch.func.vmap(exp_skew)(X), exp_skew(X), 1e-14)


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (torch.zeros(3, 2), ValueError, r"X has shape \[3, 2\]: give skew-symmetric matrices"),
        (torch.zeros(3), ValueError, r"X has shape \[3\]"),
        (torch.zeros(2, 2, dtype=torch.int64), TypeError, "got torch.int64: convert it with .float()"),
        ([[0.0, 1.0], [-1.0, 0.0]], TypeError, "got list"),
    ],
)
def test_bad_matrices_are_refused(X, error, message):
    with pytest.raises(error, match=message):
        exp_skew(X)


@pytest.mark.parametrize(("size", "norm"), [(5, 0.2), (5, 300.0), (64, 262.0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exp_products_counts_what_is_done(size, norm, dtype, monkeypatch):
    done = []
    for layout, axis in ((Rows, 0), (Columns, 2)):
        for name in ("product", "add_product"):
            method = getattr(layout, name)

            def counted(*args, method=method, axis=axis, **kwargs):
                result = method(*args, **kwargs)
                done.append(result.shape[axis])
                return result

            monkeypatch.setattr(layout, name, staticmethod(counted))
    X = random_skew(0, size, 1.0, 3)
    X = (X * (norm / (torch.linalg.matrix_norm(X) / 2**0.5))[:, None, None]).to(dtype)
    exp_skew(X)
    assert sum(done) == 3 * exp_products(norm * 0.999, size, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [4, 6, 64])
def test_norms_up_to_a_million_are_rotations_and_larger_ones_refused(dtype, size):
    X = random_skew(0, size, 1.0).to(dtype)
    for norm in (1e5, 1e6):
        R = exp_skew(norm * X)
        assert_close(R @ R.mT, torch.eye(size), tolerance(dtype, norm))
        assert_close(R, exp_by_eigenvectors(norm * X), tolerance(dtype, norm, units=20))
        assert_close(torch.func.vmap(exp_skew)((norm * X)[None])[0], R, tolerance(dtype, norm, units=20))
    with pytest.raises(ValueError, match=r"X has norm 2e\+06, but beyond 1.05e\+06 .* all precision: scale X down"):
        exp_skew(2e6 * X)
    with pytest.raises(ValueError, match="rotations lose all precision"):
        exp_skew(torch.full((1,), 1e30) * random_skew(0, 3, 1.0))
    with pytest.raises(ValueError, match="rotations lose all precision"):
        exp_skew(torch.full((1, size, size), torch.inf, dtype=dtype))
    with pytest.raises(
        ValueError, match=r"^positions of up to 2e\+06, times generators, have norm .*: use smaller pos"
    ):
        next(position_rotations(torch.full((1, 1), 2e6, dtype=dtype), X[None, None, None, None]))
    assert torch.func.vmap(exp_skew)(2e6 * X[None]).shape == (1, size, size)


@pytest.mark.parametrize("norm", [1e-3, 1.0, 262.0, 1e5])
def test_where_norms_are_hidden_the_result_is_as_good(norm):
    X = random_skew(0, 8, norm, 3).float()
    assert_close(torch.func.vmap(exp_skew)(X), exp_by_eigenvectors(X), tolerance(torch.float32, norm, units=20))
