"""A 1-D decoder that keeps rotated keys in a cache: each new token rotates one query and one key."""

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import liere


class Decoder(nn.Module):
    """Predict the next token of a sequence; positions are steps divided by `unit`."""

    def __init__(self, vocabulary: int, dim: int = 64, heads: int = 4, depth: int = 2, unit: float = 100.0) -> None:
        super().__init__()
        self.heads, self.unit = heads, unit
        self.embedding = nn.Embedding(vocabulary, dim)
        self.qkv = nn.ModuleList(nn.Linear(dim, 3 * dim) for _ in range(depth))
        self.out = nn.ModuleList(nn.Linear(dim, dim) for _ in range(depth))
        # On one axis, block_size=2 gives the same family of functions as larger blocks, at the lowest cost.
        self.rope = liere.LieRE(1, dim // heads, num_heads=heads, depth=depth, block_size=2, init_scale=unit)
        self.head = nn.Linear(dim, vocabulary)

    def forward(self, tokens: torch.Tensor, cache: list[torch.Tensor] | None = None) -> torch.Tensor:
        """Return logits; with a cache, `tokens` continue the sequence whose keys and values it holds."""
        first = cache[0].shape[3] if cache else 0
        steps = torch.arange(first, first + tokens.shape[1])
        positions = steps[:, None] / self.unit
        mask = steps[:, None] >= torch.arange(first + tokens.shape[1])  # causal
        x = self.embedding(tokens)
        for layer, (project, out) in enumerate(zip(self.qkv, self.out, strict=True)):
            q, k, v = project(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            q, k = self.rope(q, k, positions, layer=layer)
            if cache is not None:
                new = torch.stack([k, v])  # a key's rotation depends on its own position alone, so it stays valid
                new = torch.cat([cache[layer], new], dim=3) if first else new
                cache[layer : layer + 1] = [new]
                k, v = new
            x = x + out(scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2))
        return self.head(x)


torch.manual_seed(0)
model = Decoder(vocabulary=50).eval()
tokens = torch.randint(50, (2, 8))
with torch.no_grad():
    cache: list[torch.Tensor] = []
    logits = model(tokens, cache)
    for _ in range(12):  # greedy decoding
        tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], dim=1)
        logits = model(tokens[:, -1:], cache)
    full = model(tokens)
difference = (logits[:, 0] - full[:, -1]).abs().max().item()
assert difference < 1e-5
print(f"{tokens.shape[1]} tokens decoded; the cache and a full pass differ by {difference:.0e}")
