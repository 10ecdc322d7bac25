"""The polynomial that approximates the exponential of a small skew-symmetric matrix.

A skew matrix has imaginary eigenvalues and orthogonal eigenvectors, so a polynomial is as accurate on the matrix as on
the interval of the imaginary axis that contains the eigenvalues. This one has degree 12, and its derivative is the
truncated Chebyshev series of the exponential there: gradients are as accurate as values, small rotations keep their
precision, and its radius is nearly twice that of a Taylor polynomial. It takes four products, and its gradient eight:

    A = X / 2**level
    A2 = A A
    B = b1 A + b2 A2 + b3 A A2
    Q = q2 A2 + q3 B + B B
    L = Q + l0 I + l1 A + l2 A2 + l3 B
    exp(A) - I = e1 A + e2 A2 + e3 B + L Q

`tools/polynomial.py` computes the coefficients; the tests check them against the exponential.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from liere.rotations.layouts import Layout

__all__ = ["POLYNOMIALS", "PRODUCTS", "Polynomial", "Powers", "evaluate", "evaluate_plainly", "pull_back"]

PRODUCTS = 4


class Polynomial(NamedTuple):
    """Coefficients of the scheme above."""

    radius: float
    """Largest spectral norm of A for which it is accurate."""
    b1: float
    b2: float
    b3: float
    q2: float
    q3: float
    l0: float
    l1: float
    l2: float
    l3: float
    e1: float
    e2: float
    e3: float

    def of_double(self, level: int) -> Polynomial:
        """Return the polynomial that takes `X` instead of `X / 2**level`, so that matrices need not be scaled."""
        half = 2.0**-level
        return self._replace(
            radius=self.radius / half,
            b1=self.b1 * half,
            b2=self.b2 * half**2,
            b3=self.b3 * half**3,
            q2=self.q2 * half**2,
            l1=self.l1 * half,
            l2=self.l2 * half**2,
            e1=self.e1 * half,
            e2=self.e2 * half**2,
        )


# Printed by `python tools/polynomial.py 2.5 0.5`. The error of gradients is at most 5.4e-8 and 4e-16; that of values is
# at most as large, times the norm.
POLYNOMIALS = {
    torch.float32: Polynomial(
        radius=2.5,
        b1=0.15775129287394915,
        b2=0.019391149971996525,
        b3=0.006541944823158946,
        q2=-0.014277603029665003,
        q3=1.7523066486876107,
        l0=4.558964351946148,
        l1=0.7187158094572572,
        l2=0.14569735829397734,
        l3=-0.054650067764423264,
        e1=-0.02439247722797301,
        e2=0.05301513412263222,
        e3=-1.494985463613729,
    ),
    torch.float64: Polynomial(
        radius=0.5,
        b1=0.13288561293729143,
        b2=0.020242569997741496,
        b3=0.0067507209782282935,
        q2=-0.014350834997697594,
        q3=1.832002274912322,
        l0=4.999749605376137,
        l1=0.8491969468085593,
        l2=0.15712992416646354,
        l3=-0.21632810508550368,
        e1=0.02018879449274739,
        e2=0.07520444757934354,
        e3=-1.786209639336525,
    ),
}


class Powers(NamedTuple):
    """Intermediate results of the evaluation that the gradient needs."""

    A: Tensor
    A2: Tensor
    B: Tensor
    Q: Tensor
    L: Tensor


def evaluate_plainly(A: Tensor, p: Polynomial) -> Tensor:
    """Return `exp(A) - I` for matrices `[..., b, b]` up to the radius, in operations that any tracer supports."""
    identity = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    A2 = A @ A
    B = p.b1 * A + p.b2 * A2 + p.b3 * (A @ A2)
    Q = p.q2 * A2 + p.q3 * B + B @ B
    L = Q + p.l0 * identity + p.l1 * A + p.l2 * A2 + p.l3 * B
    return p.e1 * A + p.e2 * A2 + p.e3 * B + L @ Q


def evaluate(layout: Layout, w: Powers, p: Polynomial, out: Tensor) -> Tensor:
    """Write `exp(A) - I` into `out`, given `w.A`, and fill the other buffers of `w`."""
    layout.product(w.A, w.A, out=w.A2)
    torch.add(w.A, w.A2, alpha=p.b2 / p.b1, out=w.B)
    layout.add_product(w.B, w.A, w.A2, beta=p.b1, alpha=p.b3)
    torch.add(w.A2, w.B, alpha=p.q3 / p.q2, out=w.Q)
    layout.add_product(w.Q, w.B, w.B, beta=p.q2)
    torch.add(w.Q, w.A, alpha=p.l1, out=w.L).add_(w.A2, alpha=p.l2).add_(w.B, alpha=p.l3)
    layout.diagonal(w.L).add_(p.l0)
    torch.add(w.A2, w.A, alpha=p.e1 / p.e2, out=out).add_(w.B, alpha=p.e3 / p.e2)
    return layout.add_product(out, w.L, w.Q, beta=p.e2)


def pull_back(layout: Layout, w: Powers, p: Polynomial, G: Tensor, buffers: list[Tensor]) -> Tensor:
    """Return the gradient of `<G, exp(A) - I>` with respect to `w.A`, stored in one of the four buffers."""
    dL, dQ, dB, dA2 = buffers
    transpose = layout.transpose
    layout.product(G, transpose(w.Q), out=dL)
    dQ.copy_(dL)
    layout.add_product(dQ, transpose(w.L), G)
    torch.add(dL, dQ, alpha=p.q3 / p.l3, out=dB).add_(G, alpha=p.e3 / p.l3)
    layout.add_product(dB, dQ, transpose(w.B), beta=p.l3)
    layout.add_product(dB, transpose(w.B), dQ)
    torch.add(dL, dQ, alpha=p.q2 / p.l2, out=dA2).add_(G, alpha=p.e2 / p.l2).add_(dB, alpha=p.b2 / p.l2)
    layout.add_product(dA2, transpose(w.A), dB, beta=p.l2, alpha=p.b3)
    dA = torch.add(dB, dL, alpha=p.l1 / p.b1, out=dQ).add_(G, alpha=p.e1 / p.b1)
    layout.add_product(dA, dB, transpose(w.A2), beta=p.b1, alpha=p.b3)
    layout.add_product(dA, dA2, transpose(w.A))
    return layout.add_product(dA, transpose(w.A), dA2)
