"""A plain transformer over point clouds, each with its own positions."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from liere.encodings import create_encoding
from liere.encodings.contract import TransformerShape
from liere.encodings.rotary import RotaryEncoding

__all__ = ["PointTransformer", "random_clouds"]


class PointTransformer(nn.Module):
    """Classify point clouds; queries and keys are rotated by `rope(q, k, positions, layer=n)`.

    Args:
        encoding: Name of a rotary encoding, or "none".
        dim: Width of a token.
        depth: Number of layers.
        heads: Attention heads of a layer.
        num_classes: Classes.
    """

    def __init__(self, encoding: str, *, dim: int, depth: int, heads: int, num_classes: int) -> None:
        super().__init__()
        self.rope: RotaryEncoding | None = None
        if encoding != "none":
            rope = create_encoding(encoding, TransformerShape((1, 1, 1), dim, heads, depth))
            assert isinstance(rope, RotaryEncoding)
            self.rope = rope
        self.embed = nn.Linear(3, dim)
        self.layers = nn.ModuleList(_Layer(dim, heads) for _ in range(depth))
        self.head = nn.Linear(dim, num_classes)

    def forward(self, clouds: Tensor) -> Tensor:
        """Return logits of clouds `[batch, points, 6]`: positions in 3-D, then as many features of each point."""
        positions, features = clouds.split(3, dim=-1)
        x = self.embed(features)
        for n, layer in enumerate(self.layers):
            x = layer(x, self.rope, positions, n)
        return self.head(x.mean(1))


class _Layer(nn.Module):
    """A pre-norm transformer layer."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.projection = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x: Tensor, rope: RotaryEncoding | None, positions: Tensor, n: int) -> Tensor:
        qkv = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))
        if rope is not None:
            q, k = rope(q, k, positions, layer=n)
        x = x + self.projection(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


def random_clouds(clouds: int, points: int, *, num_classes: int) -> tuple[Tensor, Tensor]:
    """Return clouds `[clouds, points, 6]`, positions uniform in the unit cube, and labels: the same at every call."""
    generator = torch.Generator().manual_seed(0)
    positions = torch.rand(clouds, points, 3, generator=generator)
    features = torch.randn(clouds, points, 3, generator=generator)
    labels = torch.randint(num_classes, (clouds,), generator=generator)
    return torch.cat([positions, features], dim=-1), labels
