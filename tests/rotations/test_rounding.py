"""Rounding errors of rotations, against higher precision: the bounds in `docs/explanation/mathematics.md`."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from liere import exp_skew
from liere.rotations import position_rotations
from tests.numerics import exp_by_eigenvectors, seeds

np = pytest.importorskip("numpy")
pytestmark = pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double has no more digits than fp64")

sizes = st.sampled_from([2, 3, 4, 5, 8, 9, 10, 16, 33, 48, 64, 96, 128])
norms = st.sampled_from([0.0, 1e-8, 0.5, 1e4]) | st.floats(-3, 4).map(lambda power: 10**power)
speeds = st.sampled_from(["same", "half of them zero", "one", "three", "random", "falling"])


def planes(speeds: str, size: int, norm: float, seed: int, mixed: bool) -> torch.Tensor:
    """Return a skew matrix in a random basis whose planes rotate at these relative speeds, the fastest by `norm`."""
    count, generator = size // 2, torch.Generator().manual_seed(seed)
    speed = {
        "same": torch.ones(count),
        "half of them zero": (torch.arange(count) % 2 == 0),
        "one": torch.arange(count) == 0,
        "three": torch.tensor([1.0, 0.5, 0.0])[torch.arange(count) % 3],
        "random": torch.rand(count, generator=generator),
        "falling": 2.0 ** -torch.arange(count),
    }[speeds].double()
    speed[0] = 1
    X = torch.zeros(size, size, dtype=torch.float64)
    even = 2 * torch.arange(count)
    X[even, even + 1], X[even + 1, even] = norm * speed, -norm * speed
    if mixed:
        basis = torch.linalg.qr(torch.randn(size, size, dtype=torch.float64, generator=generator)).Q
        X = basis @ X @ basis.mT
    return (X - X.mT) / 2


def conference(size: int, norm: float, seed: int) -> torch.Tensor:
    """Return a skew conference matrix (Paley's, of prime `size - 1`) with random signs, of this spectral norm.

    All its planes turn alike and all its entries have one magnitude, so that rounding errors add up, not cancel.
    """
    prime = size - 1
    squares = torch.tensor([k * k % prime for k in range(1, prime)])
    difference = torch.arange(prime)[:, None] - torch.arange(prime)
    X = torch.ones(size, size, dtype=torch.float64)
    X[1:, 1:] = 2.0 * torch.isin(difference % prime, squares) - 1
    signs = 2.0 * torch.randint(2, (size,), generator=torch.Generator().manual_seed(seed)) - 1
    X = signs[:, None] * X * signs * norm / math.sqrt(prime)
    return X.triu(1) - X.triu(1).mT


def product(a, b):
    """Return `a @ b` of long doubles, from products of pieces of 22 bits, which are exact and fast in fp64."""

    def pieces(m):
        unit = 2.0 ** (math.ceil(math.log2(float(abs(m).max()) or 1.0)) - 22)
        for _ in range(3):
            piece = np.rint(m / unit) * unit
            yield piece.astype(np.float64)
            m, unit = m - piece, unit * 2.0**-22

    right = list(pieces(b))
    return sum((p @ q).astype(np.longdouble) for p in pieces(a) for q in right)


def exp_in_long_double(X: torch.Tensor):
    """Compute the exponential by a Taylor series and squaring of `exp(A) - I`, in x86 long doubles with 64 bits."""
    level = max(0, math.ceil(math.log2(4 * float(X.norm()) + 1e-300)))
    A = X.numpy().astype(np.longdouble) / np.longdouble(2) ** level
    term = E = A
    for k in range(2, 17):
        term = product(term, A) / np.longdouble(k)
        E = E + term
    for _ in range(level):
        E = 2 * E + product(E, E)
    return E + np.eye(len(A), dtype=np.longdouble)


def errors(R: torch.Tensor, X: torch.Tensor, norm: float) -> tuple[float, float]:
    """Return the largest errors of values and of `R R^T`, in eps (1 + norm)."""
    exact = exp_in_long_double(X) if R.dtype == torch.float64 else exp_by_eigenvectors(X).numpy()
    found, unit = R.numpy().astype(np.longdouble), torch.finfo(R.dtype).eps * (1 + norm)
    return float(abs(found - exact).max()) / unit, float(abs(product(found, found.T) - np.eye(len(R))).max()) / unit


def check(R: torch.Tensor, X: torch.Tensor, norm: float, value_bound: float, orthogonality_bound: float) -> None:
    value, orthogonality = errors(R, X, norm)
    assert value <= value_bound
    assert orthogonality <= orthogonality_bound


def test_the_reference_has_more_digits():
    """A plane that rotates by an angle with a known cosine, at the largest norm."""
    mpmath = pytest.importorskip("mpmath")
    X = planes("same", 8, 1e4, 0, mixed=False)
    with mpmath.workdps(40):
        error = abs(mpmath.mpf(str(exp_in_long_double(X)[0, 0])) - mpmath.cos(mpmath.mpf(1e4)))
    assert error < 0.05 * torch.finfo(torch.float64).eps * 1e4


@given(size=sizes, norm=norms, speeds=speeds, mixed=st.booleans(), seed=seeds)
def test_fp64(size, norm, speeds, mixed, seed):
    X = planes(speeds, size, norm, seed, mixed)
    check(exp_skew(X), X, norm, 4, 4)


@pytest.mark.parametrize("size", [48, 64, 128])
@pytest.mark.parametrize("norm", [0.3, 1.0, 30.0, 1e4])
def test_fp64_where_all_planes_turn_alike(size, norm):
    """Matrices whose Frobenius norm exceeds the spectral norm most, and which are therefore halved most often."""
    X = planes("same", size, norm, size, mixed=True)
    check(exp_skew(X), X, norm, 4, 4)
    if size == 48:
        check(torch.func.vmap(exp_skew)(X[None])[0], X, norm, 4, 4)


@given(size=sizes, norm=norms, speeds=speeds, mixed=st.booleans(), seed=seeds)
def test_fp32(size, norm, speeds, mixed, seed):
    X = planes(speeds, size, norm, seed, mixed).float()
    check(exp_skew(X), X, norm, 4 + size / 16, 4 + size / 8)


@given(size=sizes, step=st.floats(0.05, 10.0), speeds=speeds, seed=seeds, multiple=st.integers(1, 32))
def test_fp64_along_rays(size, step, speeds, seed, multiple):
    """Multiples of a position are products of rotations, and accumulate their errors."""
    X = planes(speeds, size, step, seed, mixed=True)
    positions = torch.arange(33, dtype=torch.float64)[:, None]
    (R,) = position_rotations(positions, X[None, None, None, None])
    check(R[0, multiple, 0], multiple * X, multiple * step, 4 + size / 4, 4 + size / 2)


@pytest.mark.parametrize("size", [8, 24, 84, 128])
@pytest.mark.parametrize(("norm", "is_whole"), [(0.3, True), (1740.0, True), (5.5, False)])
def test_entries_of_one_magnitude(size, norm, is_whole):
    """The worst matrices known, also with a row and a column of zeros: their bounds grow with the size."""
    X = conference(size, norm, size)
    assert torch.allclose(X @ X.mT, norm**2 * torch.eye(size, dtype=torch.float64))
    if not is_whole:
        X[0] = X[:, 0] = 0
    check(exp_skew(X), X, norm, 4 + size / 8, 4 + size / 8)
    check(exp_skew(X.float()), X.float(), norm, 4 + size, 4 + 2 * size)


@pytest.mark.parametrize(
    ("size", "norm", "seed"), [(17, 1.4673103096518103, 0), (17, 1.4673103096518103, 1), (33, 3.477150532643875, 2)]
)
def test_planes_of_equal_speed_in_the_basis_of_a_reflection(size, norm, seed):
    """Many entries of the same magnitude: the errors of some of these matrices add up, too."""
    X = planes("same", size, norm, 0, mixed=False)
    order = torch.randperm(size, generator=torch.Generator().manual_seed(seed))
    basis = (torch.eye(size, dtype=torch.float64) - 2 / size)[order]
    X = (basis @ X @ basis.mT).triu(1)
    check(exp_skew(X - X.mT), X - X.mT, norm, 8 + size / 8, 8 + size / 8)


@pytest.mark.parametrize("size", [8, 24, 68, 128])
@pytest.mark.parametrize("step", [0.07, 0.4])
def test_entries_of_one_magnitude_along_rays(size, step):
    X = conference(size, step, size)
    positions = torch.arange(33, dtype=torch.float64)[:, None]
    (R,) = position_rotations(positions, X[None, None, None, None])
    check(R[0, 32, 0], 32 * X, 32 * step, 4 + 3 * size, 4 + 6 * size)
