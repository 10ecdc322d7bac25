"""Every family of models: the original's logits at the start, and the same positions at every resolution."""

from __future__ import annotations

import copy
import subprocess
import sys

import pytest
import timm
import torch
from torch import nn

import liere
from liere.integrations.timm import convert, widen
from tests.integrations.timm.families import (
    FAMILIES,
    FLEXIBLE,
    FLEXIBLE_STARTS,
    OTHER_GRID,
    SIZED_STARTS,
    WITH_ROPE,
    assert_same,
    converted,
    difference,
    images,
    make,
    naflex_batch,
    with_random_generators,
)

every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.id)
with_rope = pytest.mark.parametrize("family", WITH_ROPE, ids=lambda family: family.id)
PLAIN, DISTILLED, MIXED = (
    next(family for family in FAMILIES if family.name == name)
    for name in ("vit_small_patch16_224", "deit_tiny_distilled_patch16_224", "vit_small_patch16_rope_mixed_224")
)


@every_family
def test_identity_starts_with_the_logits_of_the_original_and_positions_matter(family):
    model, rotated = converted(family)
    x = images(family)
    with torch.no_grad():
        expected = model(x)
        assert_same(rotated(x), expected)
        assert_same(rotated.forward_head(rotated.forward_features(x)), expected)
        assert difference(with_random_generators(rotated)(x), expected) > 1e-2
        assert torch.equal(model(x), expected)  # it was a copy
        bare = convert(model, keep_absolute=False, keep_rope=False)
        assert difference(bare(x), expected) > 1e-2  # the positions of the original matter


@with_rope
def test_rope_starts_with_the_logits_of_the_original(family):
    model, rotated = converted(family, "rope")
    x = images(family)
    assert rotated.rope is None
    with torch.no_grad():
        expected = model(x)
        assert_same(rotated(x), expected)
        assert_same(convert(model, "liere", "rope")(x), expected)
        narrow = convert(model, "rope_mixed", "rope")
        assert_same(narrow(x), expected)
        assert_same(widen(narrow, 4)(x), expected)
        assert_same(widen(widen(narrow, 4), 16)(x), expected)
        assert torch.equal(widen(narrow, 8).encoding.generators, rotated.encoding.generators)
        rotated.encoding.generators.zero_()
        assert difference(rotated(x), expected) > 1e-2


@pytest.mark.parametrize(("family", "start"), SIZED_STARTS, ids=lambda value: getattr(value, "id", value))
def test_other_resolutions_follow_timm(family, start):
    x = images(family, OTHER_GRID)
    dynamic = make(family, dynamic_img_size=True)
    rotated = convert(dynamic, "liere8", start)
    with torch.no_grad():
        assert_same(rotated(x), dynamic(x))
        assert_same(rotated(images(family)), dynamic(images(family)))
        padded = x[..., :-3]
        dynamic.patch_embed.dynamic_img_pad = rotated.patch_embed.dynamic_img_pad = True
        assert_same(rotated(padded), dynamic(padded))
    resized, rotated = converted(family, start)
    for one in (resized, rotated):
        one.set_input_size(img_size=tuple(x.shape[-2:]))
    with torch.no_grad():
        assert_same(rotated(x), resized(x))


@pytest.mark.parametrize(("family", "start"), FLEXIBLE_STARTS, ids=lambda value: getattr(value, "id", value))
def test_images_of_different_sizes_in_a_batch(family, start):
    model, rotated = converted(family, start)
    batch = naflex_batch([(3, 4), (2, 2), (4, 2)])
    with torch.no_grad():
        expected = model(batch)
        assert_same(rotated(batch), expected)
        assert_same(rotated(images(family, OTHER_GRID)), model(images(family, OTHER_GRID)))
        with_random_generators(rotated)
        assert difference(rotated(batch), expected) > 1e-2
        # Each image by itself, without padding: its neighbors in the batch and the padding change nothing.
        for number, tokens in enumerate([12, 4, 8]):
            alone = {name: part[number : number + 1, :tokens] for name, part in batch.items()}
            assert_same(rotated(alone), rotated(batch)[number : number + 1])


def test_a_batch_of_one_size_is_the_same_as_images():
    family = FLEXIBLE[0]
    rotated = with_random_generators(converted(family)[1])
    x = images(family, OTHER_GRID)
    patches = x.unfold(2, 16, 16).unfold(3, 16, 16).permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2)
    cells = torch.cartesian_prod(*map(torch.arange, OTHER_GRID)).expand(len(x), -1, -1)
    batch = {"patches": patches, "patch_coord": cells, "patch_valid": torch.ones(cells.shape[:2], dtype=torch.bool)}
    with torch.no_grad():
        assert_same(rotated(batch), rotated(x))


@every_family
def test_a_step_of_training_changes_every_generator(family):
    start = "rope" if family.rope else "identity"
    rotated = converted(family, start)[1].double()  # in fp32, attention that saturates leaves gradients that round to 0
    optimizer = torch.optim.Adam(rotated.parameters(), lr=0.1, eps=0.0)
    before = rotated.encoding.generators.detach().clone()
    logits = rotated.train()(images(family).double())
    logits = logits[0] if isinstance(logits, tuple) else logits
    nn.functional.cross_entropy(logits, torch.tensor([1, 3])).backward()
    assert (rotated.encoding.generators.grad != 0).all()
    optimizer.step()
    assert (rotated.encoding.generators != before).all()


@every_family
def test_weights_keep_their_names(family):
    model, rotated = converted(family)
    missing = rotated.load_state_dict(model.state_dict(), strict=False)
    assert missing.missing_keys == ["encoding.generators"]
    assert not missing.unexpected_keys
    other = convert(make(family, num_classes=5), "liere8")
    with_random_generators(rotated)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
        other.load_state_dict(rotated.state_dict())
        assert torch.equal(other(images(family)), rotated(images(family)))


@every_family
def test_embeddings_are_dropped_on_request(family):
    model = make(family)
    x = images(family)
    without = convert(model, keep_absolute=False)
    assert not any("pos_embed" in name and "attn_pool" not in name for name in without.state_dict())
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "pos_embed" in name and "attn_pool" not in name:
                parameter.zero_()
        assert_same(without(x), model(x))
        bare = convert(model, keep_rope=False)
        model.rope = None
        model.rope_mixed = model.rope_is_mixed = False
        assert_same(bare(x), model(x))


def test_an_encoding_may_be_given_with_options():
    model = make(MIXED)
    rope = liere.LieRE(2, 16, num_heads=2, depth=2, block_size=4, recompute=True)
    rotated = convert(model, rope, "rope")
    assert rotated.encoding is not rope
    x = images(MIXED)
    assert_same(rotated(x), model(x))
    (rotated(x).square().sum()).backward()
    plain = convert(model, "liere4", "rope")
    plain(x).square().sum().backward()
    assert_same(rotated.encoding.generators.grad, plain.encoding.generators.grad)


def test_pruned_models_keep_the_frequencies_of_their_blocks():
    model = make(MIXED)
    model.prune_intermediate_layers([0], prune_head=False)
    assert_same(convert(model, "liere8", "rope")(images(MIXED)), model(images(MIXED)))


def test_widening_keeps_the_outputs_of_any_generators():
    rotated = with_random_generators(converted(PLAIN)[1])
    wide = widen(rotated, 16)
    assert wide.encoding.block_size == 16
    assert rotated.encoding.block_size == 8
    with torch.no_grad():
        assert_same(wide(images(PLAIN)), rotated(images(PLAIN)))


def test_the_copy_keeps_mode_and_type():
    model = make(PLAIN).double().train()
    rotated = convert(model)
    assert rotated.training
    assert rotated.encoding.training
    assert isinstance(rotated, timm.models.VisionTransformer)
    assert rotated.default_cfg == model.default_cfg
    assert not convert(model.eval()).encoding.training
    assert rotated.no_weight_decay() == model.no_weight_decay() | {"encoding.generators"}


@pytest.mark.parametrize(
    ("model", "options", "error", "message"),
    [
        (
            lambda: nn.Linear(2, 2),
            {},
            TypeError,
            "must be a timm model, got a model of type Linear: make one with timm",
        ),
        (lambda: "vit", {}, TypeError, "must be a timm model, got str"),
        (
            lambda: timm.create_model("swin_tiny_patch4_window7_224", depths=(1, 1, 1, 1)),
            {},
            ValueError,
            "SwinTransformer cannot be converted: timm's classes that can are VisionTransformer",
        ),
        (
            lambda: timm.create_model("vit_small_patch16_224", features_only=True, embed_dim=32, num_heads=2, depth=3),
            {},
            ValueError,
            r"FeatureGetterNet cannot be converted, .*: convert its `.model`, as in features.model = convert",
        ),
        (lambda: make(MIXED).to("meta"), {"start": "rope"}, ValueError, "on the meta device, .*convert it on the CPU"),
        (lambda: timm.create_model("convnext_atto", depths=(1, 1, 1, 1)), {}, ValueError, "ConvNeXt cannot"),
        (lambda: make(PLAIN), {"encoding": "lier8"}, ValueError, "did you mean 'liere8'"),
        (lambda: make(PLAIN), {"encoding": "absolute"}, ValueError, "'absolute' does not rotate queries and keys"),
        (lambda: make(PLAIN), {"encoding": "visionllama"}, ValueError, "'visionllama' has no generators to learn"),
        (lambda: make(PLAIN), {"start": "ropes"}, ValueError, "unknown start 'ropes': did you mean 'rope'"),
        (lambda: make(PLAIN), {"start": "rope"}, ValueError, "needs a model with RoPE, but a model of type VisionTr"),
        (lambda: make(MIXED), {"start": "rope", "encoding": "liere3"}, ValueError, "blocks of 3 do not hold the pl"),
        (lambda: make(PLAIN, patch_drop_rate=0.5), {}, ValueError, "create it with patch_drop_rate=0"),
        (lambda: convert(make(PLAIN)), {}, TypeError, "converted already"),
        (
            lambda: timm.create_model("vit_base_patch16_xp_224", depth=1, embed_dim=32, num_heads=2),
            {},
            ValueError,
            "blocks of type ParallelScalingBlock",
        ),
        (
            lambda: timm.create_model("vit_dwee_patch16_reg1_gap_256", depth=1, embed_dim=32, num_heads=2),
            {},
            ValueError,
            "the attention DiffAttention, which cannot be converted",
        ),
        (
            lambda: make(MIXED),
            {"start": "rope", "encoding": liere.LieRE(2, 16, num_heads=2, depth=2, share_layers=True)},
            ValueError,
            "build it without share_layers",
        ),
        (lambda: make(PLAIN), {"encoding": liere.LieRE(2, 16, num_heads=3, depth=2)}, ValueError, "num_heads=2"),
    ],
)
def test_errors_say_what_to_do(model, options, error, message, no_shape_checks):
    with pytest.raises(error, match=message):
        convert(model(), **options)


def test_widening_something_else_is_an_error(no_shape_checks):
    with pytest.raises(TypeError, match="not a converted model: call convert first"):
        widen(make(PLAIN), 16)
    with pytest.raises(ValueError, match="block must be a multiple of 8 that divides 16, got 12: choose from 8, 16"):
        widen(convert(make(PLAIN)), 12)


def test_a_timm_that_computes_otherwise_is_noticed(monkeypatch):
    model = make(PLAIN)
    original = timm.layers.Attention.forward
    monkeypatch.setattr(timm.layers.Attention, "forward", lambda self, x, **options: 2 * original(self, x, **options))
    with pytest.raises(ValueError, match="this version of timm computes Attention in a way that liere does not know"):
        convert(model)


def test_without_timm_the_extra_is_named():
    code = (
        "import sys\nsys.modules['timm'] = None\n"
        "import liere\nassert 'liere.integrations.timm' not in sys.modules\nimport liere.integrations.timm"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'liere[timm]'" in done.stderr.splitlines()[-1]


def test_conversion_leaves_the_original_alone():
    model = make(DISTILLED)
    before = copy.deepcopy(model.state_dict())
    convert(model, keep_absolute=False)
    assert type(model).__name__ == "VisionTransformerDistilled"
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
