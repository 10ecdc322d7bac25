"""A small DiT-style denoiser: patches with 2-D positions, conditioned on the noise level; trained on blobs."""

import torch
from torch import nn
from torch.nn.functional import mse_loss, scaled_dot_product_attention

import liere

SIZE, PATCH, DIM, HEADS, DEPTH = 16, 2, 64, 4, 2


class Layer(nn.Module):
    """Attention and MLP whose norms are scaled and shifted by the noise level (adaLN)."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(DIM, elementwise_affine=False)
        self.condition = nn.Linear(DIM, 6 * DIM)
        nn.init.zeros_(self.condition.weight)  # every layer starts as the identity
        nn.init.zeros_(self.condition.bias)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))

    def forward(self, x, level, rope, positions, layer):
        shift, scale, gate, mlp_shift, mlp_scale, mlp_gate = self.condition(level)[:, None].chunk(6, dim=-1)
        q, k, v = self.qkv(self.norm(x) * (1 + scale) + shift).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        q, k = rope(q, k, positions, layer=layer)
        x = x + gate * self.out(scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + mlp_gate * self.mlp(self.norm(x) * (1 + mlp_scale) + mlp_shift)


class Denoiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Linear(PATCH**2, DIM)
        self.level = nn.Sequential(nn.Linear(1, DIM), nn.SiLU(), nn.Linear(DIM, DIM), nn.SiLU())
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.rope = liere.LieRE(ndim=2, head_dim=DIM // HEADS, num_heads=HEADS, depth=DEPTH)
        self.head = nn.Linear(DIM, PATCH**2)

    def forward(self, noisy: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        """Predict the clean image from `[batch, height, width]` and noise levels `[batch]`, at any resolution."""
        rows, columns = (n // PATCH for n in noisy.shape[1:])
        x = self.patches(noisy.unfold(1, PATCH, PATCH).unfold(2, PATCH, PATCH).flatten(3).flatten(1, 2))
        level = self.level(level[:, None])
        positions = liere.grid_positions((rows, columns), reference_shape=(SIZE // PATCH, SIZE // PATCH))
        for number, layer in enumerate(self.layers):
            x = layer(x, level, self.rope, positions, number)
        x = self.head(x).unflatten(1, (rows, columns)).unflatten(3, (PATCH, PATCH))
        return x.permute(0, 1, 3, 2, 4).flatten(3).flatten(1, 2)


def blobs(batch: int, size: int = SIZE) -> torch.Tensor:
    center = 2 + (size - 4) * torch.rand(batch, 2, 1, 1)
    rows, columns = torch.arange(size)[:, None], torch.arange(size)
    return torch.exp(-((rows - center[:, 0]) ** 2 + (columns - center[:, 1]) ** 2) / 8)


def error(model: nn.Module, clean: torch.Tensor) -> torch.Tensor:
    level = torch.rand(len(clean))
    return mse_loss(model(clean + level[:, None, None] * torch.randn_like(clean), level), clean)


torch.manual_seed(0)
model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for _ in range(80):
    optimizer.zero_grad()
    error(model, blobs(32)).backward()
    optimizer.step()
with torch.no_grad():
    for size in (SIZE, 24):
        clean = blobs(256, size)
        print(f"{size} px: mean squared error {error(model, clean):.4f}, of an empty image {clean.square().mean():.4f}")
