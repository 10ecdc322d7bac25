"""Implementations in ordinary torch operations: for tracing, function transforms and higher derivatives."""

from __future__ import annotations

import torch
from torch import Tensor

from liere.rotations.polynomial import POLYNOMIALS, evaluate_plainly
from liere.rotations.squarings import levels, max_level, skew_norm, small_squarings
from liere.rotations.uniform_exponential import exp_uniformly_plain
from liere.tracing import values_are_at_hand, without_autocast

__all__ = ["exp_plainly", "rotate_plainly"]


def exp_plainly(X: Tensor) -> Tensor:
    """Return the exponentials of skew matrices `[..., b, b]`, differentiable any number of times.

    Each matrix is squared as often as its own norm requires. If norms cannot be read (while tracing), the loop runs to
    the maximum number of squarings, and a mask stops each matrix. On other devices all are squared equally often.
    """
    if X.device.type not in ("cpu", "meta"):
        return exp_uniformly_plain(X)
    p = POLYNOMIALS[X.dtype]
    own = levels(skew_norm(X), p)[..., None, None]
    most = max_level(X.shape[-1], X.dtype)
    if values_are_at_hand(own):
        most = int(own.max()) if own.numel() else 0
    small = min(most, small_squarings(X.shape[-1], X.dtype))
    E = evaluate_plainly(X * torch.exp2(-own), p)
    for k in range(small):
        E = torch.where(k < own, 2 * E + E @ E, E)
    R = E + torch.eye(X.shape[-1], dtype=X.dtype, device=X.device)
    for k in range(small, most):
        R = torch.where(k < own, R @ R, R)
    return R


def rotate_plainly(x: Tensor, rotations: Tensor, num_prefix_tokens: int) -> Tensor:
    """Rotate `x` `[*batch, heads, tokens, head_dim]` by `rotations` `[*batch, heads, positions, blocks, b, b]`."""
    blocks, size = rotations.shape[-3], rotations.shape[-1]
    prefix, body = x[..., :num_prefix_tokens, :], x[..., num_prefix_tokens:, :]
    vectors, rest = body[..., : blocks * size].unflatten(-1, (blocks, size)), body[..., blocks * size :]
    # Some runtimes of exported graphs require all axes to be explicit.
    rotations = rotations[(None,) * (vectors.ndim - rotations.ndim + 1)]
    with without_autocast(x.device):  # keep the dtype of x
        rotated = torch.einsum("...ij,...j->...i", rotations, vectors).flatten(-2)
    if rest.shape[-1]:
        rotated = torch.cat([rotated, rest], dim=-1)
    return torch.cat([prefix, rotated], dim=-2) if num_prefix_tokens else rotated
