from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from liere.evaluation.attention_maps import cls_attention, overlay_png, rescaled
from liere.layers import Attention
from liere.positions import grid_positions
from liere.vit import VisionTransformer
from tests.models import small_model
from tests.numerics import assert_close, rotate_slowly


def slow_attention(model: VisionTransformer, images: Tensor) -> tuple[list[Tensor], Tensor]:
    """Return CLS's attention to each patch and the logits, computed token by token in fp64.

    With `cls_position="center"`, prefix tokens are halfway to the last patch on every axis; with `"unseen"`, their
    queries see unrotated keys. With `attention_scale="log"`, scores grow with the logarithm of the number of tokens.
    """
    batch, heads = len(images), model.blocks[0].attention.heads
    tokens, grid = model.patch_embed(images)
    prefix = [model.cls_token, model.registers] if model.registers is not None else [model.cls_token]
    tokens = torch.cat([*(token.expand(batch, -1, -1) for token in prefix), tokens], dim=1)
    first_patch = sum(token.shape[1] for token in prefix)
    positions = grid_positions(grid, reference_shape=model.grid, dtype=torch.float64)
    if model.cls_position == "center":
        center = [(n - 1) / (n_ref - 1) / 2 for n, n_ref in zip(grid, model.grid, strict=True)]
        positions = torch.cat([torch.tensor([center] * first_patch, dtype=torch.float64), positions])
    unrotated = 0 if model.cls_position == "center" else first_patch
    scale = 1 / math.sqrt(model.dim // heads)
    if model.attention_scale == "log":
        scale *= math.log(first_patch + math.prod(grid)) / math.log(first_patch + math.prod(model.grid))
    tokens = model.encoding.embed(tokens, positions, grid)
    maps = []
    for block, rotations in zip(
        model.blocks, model.encoding.layer_rotations(positions, len(model.blocks)), strict=True
    ):
        x = F.linear(block.norm1(tokens), block.attention.qkv.weight, block.attention.qkv.bias)
        q, k, v = x.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
        unrotated_keys = k
        if rotations is not None:
            rotations = rotations() if callable(rotations) else rotations
            q, k = rotate_slowly(q, rotations, unrotated), rotate_slowly(k, rotations, unrotated)
        mixed, seen = torch.zeros_like(q), torch.zeros(batch, heads, q.shape[2], dtype=torch.float64)
        for b in range(batch):
            for h in range(heads):
                for t in range(q.shape[2]):
                    is_blind = model.cls_position == "unseen" and t < first_patch
                    keys = unrotated_keys if is_blind else k
                    weights = [math.exp(float(q[b, h, t] @ key) * scale) for key in keys[b, h]]
                    weights = torch.tensor(weights, dtype=torch.float64) / sum(weights)
                    mixed[b, h, t] = weights @ v[b, h]
                    if t == 0:
                        seen[b, h] = weights
        maps.append(seen.mean(1)[:, first_patch:].view(batch, *grid))
        tokens = tokens + block.attention.projection(mixed.transpose(1, 2).flatten(2))
        tokens = tokens + block.mlp(block.norm2(tokens))
    return maps, model.head(model.norm(tokens[:, 0]))


@pytest.mark.parametrize(
    ("encoding", "options"),
    [
        ("liere8", {}),
        ("rope_mixed", {}),
        ("visionllama", {}),
        ("absolute", {}),
        ("none", {}),
        ("liere8", {"cls_position": "center"}),
        ("sincos", {"cls_position": "center", "num_registers": 0}),
        ("rope_mixed", {"cls_position": "unseen"}),
        ("liere", {"cls_position": "unseen", "num_registers": 0, "qkv_bias": True}),
        ("liere8", {"attention_scale": "log"}),
        ("none", {"attention_scale": "log"}),
        ("rope_mixed", {"cls_position": "center", "attention_scale": "log"}),
        ("visionllama", {"cls_position": "unseen", "attention_scale": "log"}),
    ],
    ids=str,
)
@torch.no_grad()
def test_maps_are_those_of_attention_written_out(encoding, options):
    model = small_model(encoding, seed=1, **({"num_registers": 2, "depth": 2} | options)).double()
    for parameter in model.parameters():
        parameter.mul_(3)  # attention that is far from uniform
    size = (16, 16) if encoding == "absolute" else (8, 20)
    images = torch.randn(2, 3, *size, dtype=torch.float64)
    expected, logits = slow_attention(model, images)
    assert_close(model(images), logits, 1e-8)
    found = cls_attention(model, images)
    assert len(found) == 2
    for one, other in zip(found, expected, strict=True):
        assert one.shape == (2, size[0] // 4, size[1] // 4)
        assert_close(one, other, 1e-6)  # softmax in fp32
        assert float(other.std()) > 1e-3


@pytest.mark.parametrize(
    "options", [{"cls_position": "center"}, {"cls_position": "unseen"}, {"attention_scale": "log"}], ids=str
)
def test_each_option_of_attention_changes_the_maps(options):
    plain, other = small_model("liere8"), small_model("liere8", **options)
    for size, differs in ((24, True), (16, "cls_position" in options)):
        images = torch.randn(2, 3, 16, size)
        first, second = cls_attention(plain, images)[0], cls_attention(other, images)[0]
        assert ((first - second).abs().max() > 1e-4) == differs
        assert torch.equal(first, second) != differs


def test_what_is_not_given_to_patches_is_given_to_extra_tokens():
    for registers in (0, 3):
        model = small_model(num_registers=registers)
        for layer in cls_attention(model, torch.randn(4, 3, 16, 16)):
            assert bool((layer >= 0).all())
            sums = layer.flatten(1).sum(1)
            assert bool((sums > 0.2).all())
            assert bool((sums < 1).all())


def test_the_model_is_left_as_it_was():
    model = small_model()
    images = torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        before = model(images)
        cls_attention(model, images)
        assert torch.equal(model(images), before)
    assert all(not module._forward_pre_hooks for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_hooks_are_removed_when_the_model_fails():
    model = small_model()
    with pytest.raises(ValueError, match="is not divisible"):
        cls_attention(model, torch.randn(2, 3, 16, 15))
    attentions = [module for module in model.modules() if isinstance(module, Attention)]
    assert len(attentions) == 3
    assert all(not module._forward_pre_hooks for module in attentions)


def test_volumes_have_maps_too():
    model = small_model("liere8", image_size=(8, 8, 8), patch_size=(4, 4, 2))
    assert cls_attention(model, torch.randn(1, 3, 8, 8, 8))[0].shape == (1, 2, 2, 4)


def test_a_model_without_cls_token_is_reported():
    with pytest.raises(ValueError, match="CLS token, but the model has pool='mean'"):
        cls_attention(small_model(pool="mean"), torch.randn(1, 3, 16, 16))


def test_maps_are_stretched_from_0_to_1():
    stretched = rescaled(torch.tensor([[0.2, 0.4], [0.3, 0.25]]))
    assert_close(stretched, torch.tensor([[0.0, 1.0], [0.5, 0.25]]), 1e-6)
    assert torch.equal(rescaled(torch.full((2, 3), 0.7)), torch.zeros(2, 3))


def test_a_picture_shows_attention_in_colour_and_ink_in_dark():
    image = pytest.importorskip("matplotlib.image")
    import io

    picture = torch.full((3, 8, 12), 255, dtype=torch.uint8)
    picture[:, 0, 0] = 0
    attention = torch.tensor([[0.0, 0.1, 0.2], [0.3, 0.4, 1.0]])
    pixels = image.imread(io.BytesIO(overlay_png(picture, attention)))
    assert pixels.shape[:2] == (8, 12)
    blue, red = pixels[1, 1, :3], pixels[7, 11, :3]
    assert blue[2] > 0.4
    assert blue[0] == 0
    assert red[0] > 0.4
    assert red[2] == 0
    assert (pixels[4:, 8:, :3] == red).all()  # a patch has one color
    assert pixels[0, 0, :3].sum() < 0.5 * blue.sum()
