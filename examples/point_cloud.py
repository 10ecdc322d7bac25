"""A transformer layer for point clouds: each example has its own positions, and gradients flow to them."""

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import liere


class PointLayer(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.rope = liere.LieRE(ndim=3, head_dim=dim // heads, num_heads=heads, block_size=4, init_scale=1.0)

    def forward(self, x: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        q, k = self.rope(q, k, points)
        return x + self.out(scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


points = torch.rand(4, 100, 3, requires_grad=True)
layer = PointLayer(dim=32, heads=4)
layer(torch.randn(4, 100, 32), points).square().mean().backward()
print("gradient of the positions:", points.grad.shape, "of the generators:", layer.rope.generators.grad.shape)
