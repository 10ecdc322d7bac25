"""The exponential and its gradient with the same number of squarings for all matrices: no value is read.

Reading norms, to square each matrix only as often as it needs, would wait for a device. So every matrix is halved and
squared as often as the largest supported norm requires. This is right for every norm, whatever it was a step earlier,
and in a CUDA graph as well. It is also precise: squarings compute `E = R - I`, as `2 E + E E`, and the entries of `E`
are as small as the matrix, so that their rounding errors are. Each squaring is a single operation.

Matrices beyond the largest norm become NaN, since an error would have to read them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from liere.rotations.layouts import Rows
from liere.rotations.polynomial import POLYNOMIALS, Polynomial, Powers, evaluate, evaluate_plainly, pull_back
from liere.rotations.squarings import max_level

__all__ = ["exp_uniformly", "exp_uniformly_plain", "pull_back_uniformly"]


def exp_uniformly(X: Tensor) -> Tensor:
    """Return the exponentials of skew matrices `[n, b, b]`."""
    most = max_level(X.shape[-1], X.dtype)
    w, p = _powers(X), POLYNOMIALS[X.dtype].of_double(most)
    E = evaluate(Rows, w, p, torch.empty_like(X))
    one = _one_or_nan(w.A2, p)
    spare = w.L
    for _ in range(most):
        torch.baddbmm(E, E, E, beta=2, out=spare)
        E, spare = spare, E
    Rows.diagonal(E).add_(one)
    return E


def pull_back_uniformly(X: Tensor, G: Tensor) -> Tensor:
    """Return the gradient of `<G, exp(X)>` with respect to `X`."""
    most = max_level(X.shape[-1], X.dtype)
    w, p = _powers(X), POLYNOMIALS[X.dtype].of_double(most)
    chain = [evaluate(Rows, w, p, torch.empty_like(X))]
    for _ in range(most - 1):
        chain.append(torch.baddbmm(chain[-1], chain[-1], chain[-1], beta=2))
    other, spare = torch.empty_like(X), torch.empty_like(X)
    for E in reversed(chain):  # the gradient of 2 E + E E is 2 G + G E^T + E^T G
        torch.baddbmm(G, G, E.mT, beta=2, out=other)
        other.baddbmm_(E.mT, G)
        G, other, spare = other, spare, other
    return pull_back(Rows, w, p, G, [other, *(torch.empty_like(X) for _ in range(3))])


def exp_uniformly_plain(X: Tensor) -> Tensor:
    """Return the same for matrices `[..., b, b]` in operations that any tracer supports."""
    most = max_level(X.shape[-1], X.dtype)
    p = POLYNOMIALS[X.dtype].of_double(most)
    E = evaluate_plainly(X, p)
    for _ in range(most):
        E = 2 * E + E @ E
    one = _one_or_nan(X.detach() @ X.detach(), p)
    return E + torch.diag_embed(one.expand(X.shape[:-1]))


def _powers(X: Tensor) -> Powers:
    return Powers(X, *(torch.empty_like(X) for _ in Powers._fields[1:]))


def _one_or_nan(square: Tensor, p: Polynomial) -> Tensor:
    """Return 1 for each matrix for which the polynomial is accurate, else NaN, `[..., 1]`, given `X X`.

    The trace of `-X X` is the square of the Frobenius norm, which is at least twice that of the spectral norm.
    """
    trace = square.diagonal(dim1=-2, dim2=-1).sum(-1, keepdim=True)
    return torch.where(trace >= -2 * p.radius**2, 1.0, torch.nan).to(square.dtype)
