from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
import torch

from liere.rotations.layouts import Columns, Rows
from liere.rotations.polynomial import POLYNOMIALS, PRODUCTS, Powers, evaluate, evaluate_plainly
from tests.numerics import assert_close, random_skew


def scalar(z, p):
    """Evaluate the scheme of the module for one number."""
    A2 = z * z
    B = p.b1 * z + p.b2 * A2 + p.b3 * z * A2
    Q = p.q2 * A2 + p.q3 * B + B * B
    L = Q + p.l0 + p.l1 * z + p.l2 * A2 + p.l3 * B
    return p.e1 * z + p.e2 * A2 + p.e3 * B + L * Q


@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 5.5e-8), (torch.float64, 6e-16)])
def test_is_the_exponential_up_to_the_radius_and_so_is_its_derivative(dtype, error):
    """Check it on the interval of the imaginary axis with the eigenvalues of skew matrices."""
    p = POLYNOMIALS[dtype]
    with mpmath.workdps(40):
        step = mpmath.mpf("1e-15")
        for k in range(1, 501):
            z = mpmath.mpc(0, mpmath.mpf(p.radius) * k / 500)
            assert abs(scalar(z, p) - mpmath.expm1(z)) < error * abs(z)
            derivative = (scalar(z + step, p) - scalar(z - step, p)) / (2 * step)
            assert abs(derivative - mpmath.exp(z)) < error
        assert abs(scalar(1.5 * z, p) - mpmath.expm1(1.5 * z)) > error * abs(z)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("level", [0, 1, 7])
def test_takes_doubles_without_scaling(dtype, level):
    p = POLYNOMIALS[dtype]
    doubled = p.of_double(level)
    for k in range(1, 20):
        x = Fraction(k, 20) * Fraction(p.radius)
        assert scalar(complex(0, float(x * 2**level)), doubled) == pytest.approx(scalar(complex(0, float(x)), p))
    assert doubled.radius == p.radius * 2**level


@pytest.mark.parametrize("layout", [Rows, Columns])
@pytest.mark.parametrize("size", [4, 7])
def test_buffers_hold_what_plain_operations_give(layout, size, monkeypatch):
    p = POLYNOMIALS[torch.float64]
    A = random_skew(0, size, 0.5, 6)
    w = Powers(*(torch.full(layout.shape(6, size), torch.nan, dtype=torch.float64) for _ in Powers._fields))
    w.A.copy_(layout.view(A))
    products = []
    for name in ("product", "add_product"):
        method = getattr(layout, name)
        monkeypatch.setattr(layout, name, staticmethod(lambda *a, m=method, **k: products.append(1) or m(*a, **k)))
    out = evaluate(layout, w, p, out=torch.empty_like(w.A))
    assert_close(layout.rows(out), evaluate_plainly(A, p), 1e-15)
    assert len(products) == PRODUCTS
