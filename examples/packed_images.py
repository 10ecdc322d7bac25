"""Pack images of several sizes into one sequence, with a CLS token each, instead of padding or resizing them."""

import torch
from torch.nn.functional import scaled_dot_product_attention

import liere

torch.manual_seed(0)
model = liere.create_model(
    encoding="liere8", image_size=32, patch_size=4, num_classes=10, dim=64, depth=2, heads=4, mlp_dim=128
).eval()


def forward_packed(images: list[torch.Tensor]) -> torch.Tensor:
    """Return the logits `[images, classes]` of images of any size."""
    tokens, shapes = [], []
    for image in images:
        patches, grid = model.patch_embed(image[None])
        tokens += [model.cls_token[0], patches[0]]
        shapes.append(grid)
    packed = liere.packed_positions(shapes, reference_shape=model.grid, num_prefix_tokens=1)
    mask = packed.mask()  # or packed.mask_mod() for flex_attention, or packed.cu_seqlens for varlen kernels
    x = torch.cat(tokens)[None]
    for layer, block in enumerate(model.blocks):
        attention = block.attention
        q, k, v = attention.qkv(block.norm1(x)).unflatten(-1, (3, attention.heads, -1)).permute(2, 0, 3, 1, 4)
        q, k = model.encoding(q, k, packed.positions, layer=layer)
        attended = scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + attention.projection(attended.transpose(1, 2).flatten(2))
        x = x + block.mlp(block.norm2(x))
    cls = x[0, packed.cu_seqlens[:-1].long()]
    return model.head(model.norm(cls))


images = [torch.randn(3, *size) for size in ((32, 32), (16, 48), (40, 24), (8, 8))]
with torch.no_grad():
    packed = forward_packed(images)
    alone = torch.cat([model(image[None]) for image in images])
print(f"{len(images)} images in one sequence; largest difference to one by one: {(packed - alone).abs().max():.0e}")
assert torch.allclose(packed, alone, atol=1e-5)
