"""Linear attention with LieRE: rotate after the feature map, and normalize without rotation.

Linear attention replaces softmax(q k) by phi(q) phi(k) with positive features phi, so that a sum over keys serves all
queries. Rotating before phi would destroy the rotation, so phi(q) and phi(k) are rotated. Their products then depend on
positions and may be negative, so the normalization uses the features before rotation, as RoPE's authors propose.

This script checks what holds: the linear form equals the quadratic one, and with blocks of 2 (where generators commute)
moving all tokens together changes nothing. With larger blocks it does.
"""

import torch
from torch.nn.functional import elu

import liere


def linear_attention(rope: liere.LieRE, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, positions: torch.Tensor):
    q, k = elu(q) + 1, elu(k) + 1  # positive features of the same width
    rotated_q, rotated_k = rope(q, k, positions)
    summary = rotated_k.mT @ v  # [batch, heads, head_dim, head_dim]: its size does not depend on the tokens
    return rotated_q @ summary / (q @ k.sum(2)[..., None])


def quadratic_attention(rope: liere.LieRE, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, positions: torch.Tensor):
    q, k = elu(q) + 1, elu(k) + 1
    rotated_q, rotated_k = rope(q, k, positions)
    weights = rotated_q @ rotated_k.mT / (q @ k.mT).sum(-1, keepdim=True)
    return weights @ v


torch.manual_seed(0)
q, k, v = torch.randn(3, 2, 4, 64, 16, dtype=torch.float64).unbind()
positions = liere.grid_positions((8, 8), dtype=torch.float64)
for block_size in (2, 8):
    rope = liere.LieRE(ndim=2, head_dim=16, num_heads=4, block_size=block_size).double()
    with torch.no_grad():
        out = linear_attention(rope, q, k, v, positions)
        difference = (out - quadratic_attention(rope, q, k, v, positions)).abs().max()
        moved = (out - linear_attention(rope, q, k, v, positions + 0.3)).abs().max() / out.abs().max()
    assert difference < 1e-10
    assert (moved < 1e-10) == (block_size == 2)
    print(f"block {block_size}: linear and quadratic form differ by {difference:.0e}; moved tokens change {moved:.0e}")
