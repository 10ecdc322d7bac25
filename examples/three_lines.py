"""Use LieRE in an attention layer in three lines."""

import torch
from torch.nn.functional import scaled_dot_product_attention

import liere

q, k, v = torch.randn(3, 8, 6, 1 + 14 * 14, 64).unbind()

rope = liere.LieRE(ndim=2, head_dim=64, num_heads=6, block_size=8)
positions = liere.grid_positions((14, 14))
q, k = rope(q, k, positions, num_prefix_tokens=1)

print(scaled_dot_product_attention(q, k, v).shape)
