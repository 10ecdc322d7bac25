"""Classify point clouds of several sizes: are the red points of a cloud close together or spread out?"""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

import liere


class PointLayer(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.rope = liere.LieRE(ndim=3, head_dim=dim // heads, num_heads=heads, block_size=4, init_scale=1.0)

    def forward(self, x: torch.Tensor, points: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        q, k = self.rope(q, k, points)
        attended = scaled_dot_product_attention(q, k, v, attn_mask=valid[:, None, None])
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.mlp(x)


class PointClassifier(nn.Module):
    """The features of a point are its color; where it is, only the rotations say."""

    def __init__(self, dim: int = 32, heads: int = 4, depth: int = 2, num_classes: int = 2) -> None:
        super().__init__()
        self.color = nn.Embedding(2, dim)
        self.layers = nn.ModuleList(PointLayer(dim, heads) for _ in range(depth))
        self.head = nn.Linear(dim, num_classes)

    def forward(self, colors: torch.Tensor, points: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
        points = points * valid[..., None]  # padded points are at 0, and masked
        x = self.color(colors)
        for layer in self.layers:
            x = layer(x, points, valid)
        return self.head((x * valid[..., None]).sum(1) / valid.sum(1, keepdim=True))


def clouds(batch: int, most: int = 24) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return colors `[batch, most]`, points `[batch, most, 3]`, which points are real, and the labels."""
    labels = torch.randint(2, (batch,))
    points = torch.rand(batch, most, 3)
    colors = (torch.arange(most) < 6).long().expand(batch, -1)
    together = points[:, :1] + 0.1 * torch.randn(batch, most, 3)
    points = torch.where((labels[:, None] * colors).bool()[..., None], together, points)
    valid = torch.arange(most) < torch.randint(most // 2, most + 1, (batch, 1))
    return colors, points, valid, labels


torch.manual_seed(0)
model = PointClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(100):
    *cloud, labels = clouds(64)
    loss = cross_entropy(model(*cloud), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

colors, points, valid, labels = clouds(256)
with torch.no_grad():
    logits = model(colors, points, valid)
    alone = model(*(x[:1, valid[0]] for x in (colors, points, valid)))  # without padding
assert torch.allclose(logits[:1], alone, atol=1e-4)
print(f"accuracy after 100 steps: {(logits.argmax(1) == labels).float().mean():.2f}")
