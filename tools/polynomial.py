"""Compute the coefficients of `liere.rotations.polynomial` from scratch.

    python tools/polynomial.py 2.5 0.5

prints them for radius 2.5 (fp32) and 0.5 (fp64), with the remaining error. Requires numpy, scipy and mpmath.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import mpmath as mp
import numpy as np
from scipy.optimize import least_squares

DEGREE = 12
mp.mp.dps = 50


def chebyshev(f: Callable[[mp.mpf], mp.mpf], degree: int, radius: mp.mpf) -> list[mp.mpf]:
    """Return the power-basis coefficients of the truncated Chebyshev series of `f` on `[-radius, radius]`."""
    n = 64
    angles = [mp.pi * (k + mp.mpf(1) / 2) / n for k in range(n)]
    values = [f(radius * mp.cos(a)) for a in angles]
    before, now, result = [mp.mpf(0)], [mp.mpf(1)], [mp.mpf(0)] * (degree + 1)
    for j in range(degree + 1):
        weight = sum(v * mp.cos(j * a) for v, a in zip(values, angles, strict=True)) * (2 if j else 1) / n
        result = [r + weight * c for r, c in zip(result, now + [0] * (degree + 1 - len(now)), strict=True)]
        following = [mp.mpf(0), *((2 if j else 1) * c for c in now)]
        before, now = now, [c - (before[i] if j and i < len(before) else 0) for i, c in enumerate(following)]
    return [c / radius**k for k, c in enumerate(result)]


def target(radius: mp.mpf) -> list[mp.mpf]:
    """Return the coefficients of `p(z) ~ exp(z) - 1` on the imaginary axis.

    Its derivative is the truncated Chebyshev series of the exponential, so gradients are as accurate as values, and the
    error of the values is relative to `|z|`.
    """
    cosine, sine = chebyshev(mp.cos, DEGREE - 1, radius), chebyshev(mp.sin, DEGREE - 1, radius)
    derivative = [(sine if k % 2 else cosine)[k] * (-1) ** (k // 2) for k in range(DEGREE)]
    return [mp.mpf(0), *(c / (k + 1) for k, c in enumerate(derivative))]


def multiply(a: Sequence, b: Sequence) -> list:
    """Return the product of two polynomials."""
    product = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            product[i + j] += x * y
    return product


def solve(radius: float) -> dict[str, mp.mpf]:
    """Return the coefficients of the form `E + (Q + L) Q`, with `Q = q2 A^2 + q3 B + B^2` and E, L cubic in A.

    The upper three coefficients of Q follow from those of the polynomial. Six equations and the condition that Q has no
    separate term in A determine the rest; of several solutions, the one with the smallest coefficients is chosen.
    """
    r = mp.mpf(radius)
    p = [c * r**k for k, c in enumerate(target(r))]  # rescaled to a variable in [-1, 1]
    q6 = mp.sqrt(p[12])
    q5 = p[11] / (2 * q6)
    q4 = (p[10] - q5**2) / (2 * q6)
    x3 = mp.sqrt(q6)
    x2 = q5 / (2 * x3)
    x1 = (q4 - x2**2) / (2 * x3)

    def residual(v: Sequence, convert: Callable = lambda x: x) -> list:
        c, x = [convert(a) for a in p], [convert(a) for a in (x1, x2, x3)]
        Q = [0, v[2], v[1], v[0], convert(q4), convert(q5), convert(q6)]
        product = multiply(Q, [a + b for a, b in zip(Q, [v[6], v[5], v[4], v[3], 0, 0, 0], strict=True)])
        no_A_in_Q = v[2] - (v[0] - 2 * x[0] * x[1]) / x[2] * x[0]
        return [(product[k] - c[k]) / c[k] for k in range(9, 3, -1)] + [no_A_in_Q]

    random, solutions = np.random.default_rng(0), []
    for _ in range(200):
        start = random.normal(size=7) * 10 ** random.uniform(-2, 1)
        found = least_squares(lambda v: np.array(residual(v, float)), start, xtol=1e-15, ftol=1e-15, gtol=1e-15)
        if max(abs(found.fun)) < 1e-9:
            solutions.append(found.x)
    start = min(solutions, key=lambda v: abs(v).max())
    Q3, Q2, Q1, L3, L2, L1, L0 = mp.findroot(lambda *v: residual(v), [mp.mpf(c) for c in start], tol=1e-40)
    Q, L = [0, Q1, Q2, Q3, q4, q5, q6], [L0, L1, L2, L3, 0, 0, 0]
    rest = [a - b for a, b in zip(p, multiply(Q, [a + b for a, b in zip(Q, L, strict=True)]), strict=True)]
    q3 = (Q3 - 2 * x1 * x2) / x3

    def with_b(c1: mp.mpf, c2: mp.mpf, c3: mp.mpf) -> tuple[mp.mpf, mp.mpf, mp.mpf]:
        """Return the coefficients of `c1 A + c2 A^2 + c3 A^3` with B instead of the cube."""
        share = c3 / x3
        return (c1 - share * x1) / r, (c2 - share * x2) / r**2, share

    l1, l2, l3 = with_b(L1, L2, L3)
    e1, e2, e3 = with_b(*rest[1:4])
    b = {"b1": x1 / r, "b2": x2 / r**2, "b3": x3 / r**3}
    return {"radius": r, **b, "q2": (Q2 - x1**2 - q3 * x2) / r**2, "q3": q3} | {
        "l0": L0, "l1": l1, "l2": l2, "l3": l3, "e1": e1, "e2": e2, "e3": e3
    }  # fmt: skip


def error(c: dict[str, mp.mpf]) -> mp.mpf:
    """Return the largest error of the derivative on the imaginary axis, which bounds the value's error over `|z|`."""

    def at(z: mp.mpc) -> mp.mpc:
        A2 = z * z
        B = c["b1"] * z + c["b2"] * A2 + c["b3"] * z * A2
        Q = c["q2"] * A2 + c["q3"] * B + B * B
        return c["e1"] * z + c["e2"] * A2 + c["e3"] * B + (Q + c["l0"] + c["l1"] * z + c["l2"] * A2 + c["l3"] * B) * Q

    step = mp.mpf("1e-15")
    points = [mp.mpc(0, c["radius"] * k / 1000) for k in range(1001)]
    return max(abs((at(z + step) - at(z - step)) / (2 * step) - mp.exp(z)) for z in points)


def main() -> None:
    """Print the coefficients for each radius."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("radius", type=float, nargs="+")
    for radius in parser.parse_args().radius:
        coefficients = solve(radius)
        print(f"# error {mp.nstr(error(coefficients), 3)}")
        print("Polynomial(")
        for name, value in coefficients.items():
            print(f"    {name}={float(value)!r},")
        print("),")


if __name__ == "__main__":
    main()
