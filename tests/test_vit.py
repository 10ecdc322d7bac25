from __future__ import annotations

import itertools
from unittest import mock

import pytest
import torch
from torch.nn import functional as F

from liere import PositionEncoding, grid_positions
from liere.layers import DropPath, grid_shape
from tests.models import ENCODINGS, ROTARY, small_model
from tests.numerics import assert_close

SHAPES = [
    ((24,), (4,)),
    ((16, 16), (4, 4)),
    ((8, 20), (4, 2)),
    ((4, 8, 12), (2, 4, 4)),
    ((2, 4, 4, 4), (1, 2, 4, 2)),
]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(("image_size", "patch_size"), SHAPES)
def test_runs_on_inputs_of_any_number_of_axes(encoding, image_size, patch_size):
    model = small_model(encoding, image_size=image_size, patch_size=patch_size, in_channels=2, num_registers=2)
    x = torch.randn(2, 2, *image_size)
    model(x).sum().backward()
    assert model(x).shape == (2, 5)
    larger = (image_size[0] + patch_size[0], *image_size[1:])
    if encoding != "absolute" or len(image_size) < 4:
        assert model(torch.randn(2, 2, *larger)).shape == (2, 5)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_batch_gives_the_logits_of_its_members(encoding, dtype):
    model = small_model(encoding).to(dtype)
    x = torch.randn(3, 3, 16, 24, dtype=dtype)
    together, alone = model(x), torch.cat([model(member[None]) for member in x])
    assert_close(together, alone, 20 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("qk_norm", [False, True])
def test_autocast_gives_nearly_the_same_logits(encoding, qk_norm):
    model = small_model(encoding, qk_norm=qk_norm, num_registers=1)
    x = torch.randn(3, 3, 16, 16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low = model(x)
        low.float().square().sum().backward()
    assert low.dtype == torch.bfloat16
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    full = model(x)
    assert (low - full).abs().max() < 0.05 * full.abs().max()
    alone = []
    with torch.autocast("cpu", dtype=torch.bfloat16):
        alone = torch.cat([model(member[None]) for member in x])
    assert (alone - low).abs().max() < 0.02 * full.abs().max()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_agrees_with_a_plain_transformer(encoding):
    """Layer by layer with explicit softmax, in fp64, at another resolution than the training one."""
    model = small_model(encoding, num_registers=2, qk_norm=True).double()
    x = torch.randn(2, 3, 20, 16, dtype=torch.float64)
    patches = [x[:, :, i : i + 4, j : j + 4].flatten(1) for i, j in itertools.product(range(0, 20, 4), range(0, 16, 4))]
    tokens = model.patch_embed.projection(torch.stack(patches, dim=1))
    positions = grid_positions((5, 4), reference_shape=(4, 4), dtype=torch.float64)
    prefix = torch.cat([model.cls_token, model.registers], dim=1).expand(2, -1, -1)
    tokens = model.encoding.embed(torch.cat([prefix, tokens], dim=1), positions, (5, 4))
    for layer, block in enumerate(model.blocks):
        attention = block.attention
        q, k, v = (
            part.unflatten(-1, (2, 24)).transpose(1, 2) for part in attention.qkv(block.norm1(tokens)).chunk(3, -1)
        )
        q, k = attention.q_norm(q), attention.k_norm(k)
        if encoding in ROTARY:
            q, k = model.encoding(q, k, positions, layer=layer, num_prefix_tokens=3)
        mixed = (q @ k.mT / 24**0.5).softmax(-1) @ v
        tokens = tokens + attention.projection(mixed.transpose(1, 2).flatten(2))
        hidden = F.gelu(block.mlp[0](block.norm2(tokens)))
        tokens = tokens + block.mlp[3](hidden)
    assert_close(model.forward_features(x), tokens, 1e-12)
    assert_close(model(x), model.head(model.norm(tokens[:, 0])), 1e-12)


def test_mean_pooling_leaves_out_prefix_tokens():
    model = small_model("none", pool="mean", num_registers=2)
    assert model.cls_token is None
    tokens = model.forward_features(torch.randn(2, 3, 16, 16))
    assert tokens.shape == (2, 2 + 16, 48)
    expected = model.norm(tokens[:, 2:].mean(1))
    assert_close(model.forward_head(tokens, pre_logits=True), expected, 1e-6)
    assert_close(model.forward_head(tokens), model.head(expected), 1e-6)


def test_position_policies_differ_away_from_the_training_size_only():
    x, larger = torch.randn(1, 3, 16, 16), torch.randn(1, 3, 24, 24)
    logits = {}
    for policy in ("extend", "rescale", "reference"):
        model = small_model("liere8", position_policy=policy)
        logits[policy] = model(x), model(larger)
    assert_close(logits["extend"][0], logits["rescale"][0], 1e-5)
    assert (logits["extend"][1] - logits["rescale"][1]).abs().max() > 1e-4
    assert (logits["extend"][1] - logits["reference"][1]).abs().max() > 1e-5


def test_half_precision_models_keep_the_digits_of_positions():
    """16 px and patch 1: neighbors 1/15 apart would be rounded too coarsely in bf16."""
    model = small_model("liere8", patch_size=1).bfloat16()
    seen = []
    layer_rotations = model.encoding.layer_rotations
    model.encoding.layer_rotations = lambda positions, depth: (
        seen.append(positions) or layer_rotations(positions, depth)
    )
    assert model(torch.randn(1, 3, 16, 16, dtype=torch.bfloat16)).dtype == torch.bfloat16
    assert torch.equal(seen[0], grid_positions((16, 16)))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_gradient_checkpointing_gives_the_same_gradients(encoding):
    model = small_model(encoding).double().train()
    x = torch.randn(2, 3, 16, 16, dtype=torch.float64)
    gradients = []
    for enable in (False, True):
        model.set_grad_checkpointing(enable)
        gradients.append(torch.autograd.grad(model(x).square().sum(), list(model.parameters())))
    for plain, checkpointed in zip(*gradients, strict=True):
        torch.testing.assert_close(plain, checkpointed)


def test_checkpointing_runs_each_layer_again_in_backward():
    model = small_model("liere8").train()
    calls = []
    model.blocks[1].norm1.register_forward_hook(lambda *_: calls.append(1))
    model.set_grad_checkpointing()
    model(torch.randn(1, 3, 16, 16)).sum().backward()
    assert len(calls) == 2


def test_every_dropout_is_where_it_belongs():
    """In a training step these run, with their rates: embedding, then attention output and twice the MLP per layer."""
    model = small_model("liere8", dropout=0.3, attn_dropout=0.2, drop_path=0.4).train()
    seen = []
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Dropout):
            module.register_forward_hook(lambda module, *_, name=name: seen.append((name, module.p)))
        if isinstance(module, DropPath):
            module.register_forward_hook(lambda module, *_, name=name: seen.append((name, module.probability)))
    with mock.patch("liere.layers.F.scaled_dot_product_attention", wraps=F.scaled_dot_product_attention) as attend:
        model(torch.randn(1, 3, 16, 16))
    assert [call.kwargs["dropout_p"] for call in attend.call_args_list] == [0.2] * 3
    expected = [("dropout", 0.3)]
    for layer, rate in enumerate([0.0, 0.2, 0.4]):
        block, drop = f"blocks.{layer}", (f"blocks.{layer}.drop_path", rate)
        expected += [(f"{block}.attention.dropout", 0.3), drop, (f"{block}.mlp.2", 0.3), (f"{block}.mlp.4", 0.3), drop]
    assert seen == expected


def test_dropout_and_drop_path_act_in_training_only():
    model = small_model("liere8", dropout=0.3, attn_dropout=0.3, drop_path=0.5)
    x = torch.randn(4, 3, 16, 16)
    assert torch.equal(model(x), model(x))
    model.train()
    assert not torch.equal(model(x), model(x))
    assert [round(block.drop_path.probability, 2) for block in model.blocks] == [0.0, 0.25, 0.5]


def test_drop_path_drops_whole_members_and_keeps_the_mean():
    torch.manual_seed(0)
    drop = DropPath(0.25).train()
    dropped = drop(torch.ones(4000, 3))
    assert_close(dropped.unique(), torch.tensor([0, 4 / 3]), 1e-6)
    assert torch.equal(dropped[:, 0], dropped[:, 2])
    assert dropped.mean().item() == pytest.approx(1, abs=0.05)


def test_reset_classifier():
    model = small_model().double()
    model.reset_classifier(7)
    assert model.num_classes == 7
    assert model(torch.randn(1, 3, 16, 16, dtype=torch.float64)).shape == (1, 7)
    assert model.get_classifier() is model.head
    model.reset_classifier(0, global_pool="mean")
    assert model(torch.randn(1, 3, 16, 16, dtype=torch.float64)).shape == (1, 48)
    with pytest.raises(ValueError, match="global_pool='cls' needs a CLS token"):
        small_model(pool="mean").reset_classifier(5, "cls")
    with pytest.raises(ValueError, match="num_classes must be at least 0, got -1"):
        model.reset_classifier(-1, "cls")
    assert (model.num_classes, model.pool) == (0, "mean"), "nothing changes where something is wrong"


def test_options_of_attention():
    attention = small_model(qk_norm=True, qkv_bias=True).blocks[0].attention
    assert isinstance(attention.q_norm, torch.nn.LayerNorm)
    assert attention.q_norm.normalized_shape == attention.k_norm.normalized_shape == (24,)
    assert attention.qkv.bias is not None
    plain = small_model().blocks[0].attention
    assert isinstance(plain.q_norm, torch.nn.Identity)
    assert plain.qkv.bias is None


def test_extra_tokens_start_small():
    model = small_model(dim=480, num_registers=20)
    assert model.cls_token.std().item() == pytest.approx(0.02, rel=0.2)
    assert model.registers.std().item() == pytest.approx(0.02, rel=0.05)


def test_no_weight_decay_names_positions_and_extra_tokens():
    model = small_model("liere8", num_registers=1)
    assert model.no_weight_decay() == {"cls_token", "registers", "encoding.generators"}
    assert model.no_weight_decay() <= {name for name, _ in model.named_parameters()}
    assert small_model("absolute", pool="mean").no_weight_decay() == {"encoding.embedding"}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_meta_models_know_their_shapes(encoding):
    with torch.device("meta"):
        assert small_model(encoding)(torch.empty(2, 3, 16, 20)).shape == (2, 5)


def test_grid_shape():
    assert grid_shape((8, 224, 160), (2, 16, 16)) == (4, 14, 10)


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (
            (1, 3, 16, 18),
            r"\(16, 18\) is not divisible by patch_size \(4, 4\) on axis 1: 18 .* resize or pad it to 16",
        ),
        ((1, 3, 16), r"input has shape \[1, 3, 16\], but this model expects \[batch, 3, size, size\]"),
        ((1, 1, 16, 16), "in_channels=3 and 2 axes"),
        ((1, 3, 16, 16, 16), "in_channels=3 and 2 axes"),
        ((1, 3, 0, 16), "0 is not a multiple of 4"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(shape, message):
    with pytest.raises(ValueError, match=message):
        small_model()(torch.zeros(shape))


@pytest.mark.usefixtures("no_shape_checks")
def test_rotations_of_an_encoding_of_ones_own_have_to_fit():
    class Wrong(PositionEncoding):
        def layer_rotations(self, positions, depth):
            yield from itertools.repeat(torch.eye(4).expand(2, 9, 6, 4, 4), depth)

    with pytest.raises(ValueError, match=r"x has 17 tokens, num_prefix_tokens=1 of them .* there are 9 positions"):
        small_model(Wrong())(torch.randn(1, 3, 16, 16))
