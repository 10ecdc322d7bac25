"""State dicts say how their model was converted: loading them into another conversion warns."""

from __future__ import annotations

import copy
import io
import warnings

import pytest
import timm
import torch

from liere.integrations.timm import convert
from tests.integrations.timm.families import FAMILIES, SMALL, images, make, with_random_generators

BY_ID = {family.id: family for family in FAMILIES}
PLAIN, AXIAL, DINO = (
    BY_ID[name] for name in ("vit_small_patch16_224", "vit_small_patch16_rope_224", "vit_small_patch16_dinov3")
)


@pytest.mark.parametrize("family", [AXIAL, DINO], ids=lambda family: family.id)
@pytest.mark.parametrize(
    ("theirs", "ours", "message"),
    [
        ({"start": "rope"}, {}, r"conversion with start='rope', keep_rope=False.* has start='identity', keep_rope="),
        ({}, {"keep_rope": False}, "conversion with keep_rope=True, but this model has keep_rope=False, so its logits"),
    ],
    ids=["start", "keep_rope"],
)
def test_another_conversion_warns(family, theirs, ours, message):
    model = make(family)
    weights = convert(model, **theirs).state_dict()
    with pytest.warns(UserWarning, match=message):
        convert(model, **ours).load_state_dict(weights)


def test_another_grid_warns():
    small, large = (convert(make(PLAIN, img_size=size, pos_embed="none")) for size in (48, 64))
    with pytest.warns(UserWarning, match=r"conversion with grid=\(3, 3\), but this model has grid=\(4, 4\)"):
        large.load_state_dict(small.state_dict())


@pytest.mark.parametrize("start", ["identity", "rope"])
def test_the_same_conversion_does_not_warn(start, tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    model = with_random_generators(convert(make(DINO), "liere8", start))
    x, weights = images(DINO), model.state_dict()
    safetensors.save_file(weights, tmp_path / "model.safetensors")
    file = io.BytesIO()
    torch.save(weights, file)
    file.seek(0)
    halves = {name: value.bfloat16() for name, value in weights.items()}
    for found in (safetensors.load_file(tmp_path / "model.safetensors"), torch.load(file, weights_only=True), weights):
        other = convert(make(DINO), "liere8", start)
        other.load_state_dict(found)
        assert torch.equal(other(x), model(x))
        other.load_state_dict(halves)
        assert not torch.equal(other(x), model(x))


def test_descriptions_that_cannot_be_read_say_nothing():
    model = convert(make(PLAIN))
    weights = model.state_dict()
    own = weights["_extra_state"]
    for other in (own[:9], own * 0, own + torch.nan, own.to("meta"), own.to(torch.complex64), torch.full_like(own, 48)):
        model.load_state_dict({**weights, "_extra_state": other})
    assert torch.equal(copy.deepcopy(model).get_extra_state(), own)


def test_halved_descriptions_are_read():
    model = make(AXIAL)
    weights = {name: value.bfloat16() for name, value in convert(model, start="rope").state_dict().items()}
    with pytest.warns(UserWarning, match="start='rope'"):
        convert(model).load_state_dict(weights)


@pytest.mark.parametrize("safe", [True, False])
def test_scratch_models_round_trip_through_timm(safe, tmp_path):
    pytest.importorskip("huggingface_hub")
    name, options = "liere_vit_tiny_patch16_224", {**SMALL, "img_size": 48}
    model = timm.create_model(name, **options).eval()
    timm.models.save_for_hf(model, tmp_path, model_args=options, safe_serialization=safe)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other = timm.create_model(f"local-dir:{tmp_path}", pretrained=True).eval()
    assert torch.equal(other(images(PLAIN)), model(images(PLAIN)))
