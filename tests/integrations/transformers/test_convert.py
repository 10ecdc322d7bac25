"""Conversions have the outputs of the original until they are trained, and errors name the remedy."""

from __future__ import annotations

import pytest
import torch
import transformers
from torch import nn

from liere import LieRE
from liere.integrations.transformers import convert, widen
from tests.integrations.transformers.families import (
    FAMILIES,
    STARTS,
    assert_same,
    converted,
    difference,
    inputs,
    make,
    run,
    with_random_generators,
)

by_id = {"ids": lambda value: getattr(value, "id", value)}
WITH_ROPE = [family for family in FAMILIES if family.rope]


@pytest.mark.parametrize(("family", "start"), STARTS, **by_id)
def test_outputs_are_those_of_the_original(family, start):
    model, rotated = converted(family, start)
    assert isinstance(rotated, family.model)
    for other in (False, True) if family.sizes else (False,):
        given = inputs(family, other)
        with torch.no_grad():
            expected = run(model, given)
            assert_same(run(rotated, given), expected)
            changed = run(with_random_generators(converted(family, start)[1]), given)
        assert difference(changed, expected) > 1e-2


@pytest.mark.parametrize("family", WITH_ROPE, **by_id)
def test_a_rope_can_be_removed_and_matters(family):
    model, rotated = converted(family, keep_rope=False)
    given = inputs(family)
    with torch.no_grad():
        assert difference(run(rotated, given), run(model, given)) > 1e-2


@pytest.mark.parametrize("family", [family for family in FAMILIES if family.absolute], **by_id)
def test_an_absolute_embedding_can_be_removed_and_matters(family):
    model, rotated = converted(family, keep_absolute=False)
    given = inputs(family)
    with torch.no_grad():
        without = run(rotated, given)
        assert difference(without, run(model, given)) > 1e-2
        for name, parameter in model.named_parameters():
            if "vision_model.embeddings.position" in name or name.removeprefix("vit.").startswith(
                ("embeddings.position", "dinov2.embeddings.position", "dinov2_with_registers.embeddings.position")
            ):
                parameter.zero_()
        if family.label != "VideoMAE":
            assert_same(without, run(model, given))
            other = inputs(family, other=True)
            expected = run(model, other)
            other.pop("interpolate_pos_encoding", None)
            assert_same(run(rotated, other), expected)


@pytest.mark.parametrize(("family", "start"), STARTS, **by_id)
def test_a_training_step_changes_every_generator(family, start):
    rotated = converted(family, start)[1].train()
    before = rotated.encoding.generators.detach().clone()
    optimizer = torch.optim.SGD(rotated.parameters(), lr=10.0)
    run(rotated, inputs(family)).square().mean().backward()
    assert (rotated.encoding.generators.grad != 0).all()
    optimizer.step()
    assert (rotated.encoding.generators != before).all()


@pytest.mark.parametrize("family", WITH_ROPE, **by_id)
def test_a_rope_with_other_frequencies_is_taken_over(family, tmp_path):
    model, given = make(family), inputs(family)
    rope = model.rope_embeddings if family.label == "DINOv3" else model.rotary_pos_emb
    with torch.no_grad():
        before = run(model, given)
        rope.inv_freq.copy_(torch.rand(rope.inv_freq.shape, generator=torch.Generator().manual_seed(3)))
        expected = run(model, given)
        assert difference(before, expected) > 1e-2
        rotated = convert(model, "liere8", start="rope")
        assert_same(run(rotated, given), expected)
        rotated.save_pretrained(tmp_path)
        assert torch.equal(run(transformers.AutoModel.from_pretrained(tmp_path), given), run(rotated, given))


@pytest.mark.parametrize("family", WITH_ROPE, **by_id)
def test_wider_blocks_have_the_same_outputs(family):
    planes = convert(make(family), "rope_mixed", start="rope")
    wide = widen(planes, 8)
    assert wide.config.liere["encoding"]["block_size"] == wide.encoding.block_size == 8
    given = inputs(family)
    with torch.no_grad():
        assert_same(run(wide, given), run(planes, given))
    assert widen(planes.encoding, 4).block_size == 4


def test_other_weights_and_the_original_are_kept():
    family = FAMILIES[1]
    model, rotated = converted(family)
    kept = dict(rotated.named_parameters())
    assert set(kept) == {*dict(model.named_parameters()), "vit.encoding.generators"}
    assert all(torch.equal(kept[name], parameter) for name, parameter in model.named_parameters())
    assert type(model) is family.model
    assert model.config.model_type == "vit"
    assert rotated.config.model_type == "liere_vit"
    found = rotated.load_state_dict(model.state_dict(), strict=False)
    assert found.missing_keys == ["vit.encoding.generators"]


def test_random_moves_of_dinov3_in_training():
    family = next(family for family in FAMILIES if family.label == "DINOv3")
    model = make(family)
    model.config.pos_embed_shift, model.config.pos_embed_jitter, model.config.pos_embed_rescale = 0.5, 1.5, 2.0
    rotated = convert(model, "liere8", "rope").train()
    given, found = inputs(family), []
    with torch.no_grad():
        still = run(model, given)
        for each in (model.train(), rotated):
            torch.manual_seed(5)
            found.append(run(each, given))
    assert_same(found[1], found[0])
    assert difference(found[0], still) > 1e-2


def test_half_precision():
    model = make(FAMILIES[0]).bfloat16()
    rotated = with_random_generators(convert(model))
    assert rotated.encoding.generators.dtype == torch.float32
    pixels = inputs(FAMILIES[0])["pixel_values"]
    full = convert(make(FAMILIES[0]))
    full.load_state_dict(rotated.state_dict())
    with torch.no_grad():
        found = rotated(pixels.bfloat16()).last_hidden_state
        assert_same(found.float(), full.float()(pixels).last_hidden_state, 0.1)


def test_an_encoding_with_options():
    own = LieRE(2, 16, num_heads=2, depth=2, block_size=4, share_heads=True, recompute=True)
    rotated = with_random_generators(convert(make(FAMILIES[0]), own)).train()
    run(rotated, inputs(FAMILIES[0])).square().mean().backward()
    assert (rotated.encoding.generators.grad != 0).all()


@pytest.mark.usefixtures("no_shape_checks")
def test_errors_name_the_remedy():
    model = make(FAMILIES[0])
    with pytest.raises(ValueError, match="start='rope' needs a model with RoPE, but a model of type ViTModel has none"):
        convert(model, start="rope")
    with pytest.raises(ValueError, match="unknown start 'rop': did you mean 'rope'"):
        convert(model, start="rop")
    with pytest.raises(ValueError, match="encoding 'absolute' does not rotate queries and keys"):
        convert(model, "absolute")
    with pytest.raises(ValueError, match="encoding 'visionllama' has no generators to learn"):
        convert(model, "visionllama")
    with pytest.raises(TypeError, match="converted already"):
        convert(convert(model))
    with pytest.raises(TypeError, match="must be a model of transformers, got str"):
        convert("google/vit-base-patch16-224")
    with pytest.raises(TypeError, match="must be a model of transformers, got a model of type Linear: load one"):
        convert(nn.Linear(1, 1))
    with pytest.raises(TypeError, match="type Sequential: convert its vision tower '0' and put it back"):
        convert(nn.Sequential(model))
    with pytest.raises(TypeError, match="keep_absolute must be a bool, got 'no': use True or False"):
        convert(model, keep_absolute="no")
    with pytest.raises(TypeError, match="keep_rope must be a bool, got 0: use True or False"):
        convert(model, keep_rope=0)
    with pytest.raises(TypeError, match="type ViTModel is not a converted model: call convert first"):
        widen(model, 8)
    with pytest.raises(ValueError, match="needs the positions of its tokens"):
        convert(model).layers[0](torch.zeros(1, 10, 32))
    bert = transformers.BertModel(transformers.BertConfig(**{**TINY, "vocab_size": 9}))
    with pytest.raises(
        ValueError, match=r"type BertModel cannot be converted: .* ViT, DINOv2, .*ViTForImageClassification"
    ):
        convert(bert)


TINY = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 16}
