"""Models around a vision tower: outputs are those of the original, the tower learns, and saving keeps it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
import transformers
from torch import Tensor

from liere.integrations.transformers import convert, widen
from liere.integrations.transformers.models import RotatedTower, tower_of
from tests.integrations.transformers.families import (
    FAMILIES,
    FLEXIBLE,
    IMAGE,
    QWEN,
    SMALL,
    TEXT,
    WINDOWS,
    assert_same,
    difference,
    inputs,
    with_random_generators,
)

BY_LABEL = {family.label: family for family in FAMILIES}
WORDS = {"input_ids": torch.tensor([[1, 2, 19], [4, 5, 6]])}
LANGUAGE = {
    **SMALL,
    "vocab_size": 40,
    "num_key_value_heads": 2,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]},
}
SPECIAL = {"image_token_id": 30, "video_token_id": 31, "vision_start_token_id": 32, "vision_end_token_id": 33}


class Wrapper(NamedTuple):
    """A model around a tower, and what it takes."""

    auto: str
    model: type
    config: Callable[[], Any]
    given: Callable[[], dict[str, Any]]

    @property
    def id(self) -> str:
        """What tests call it."""
        return self.model.__name__


def both(config: type, **vision: Any) -> Callable[[], Any]:
    return lambda: config(vision_config={**SMALL, **vision}, text_config=TEXT, projection_dim=16)


def images_and_words(label: str) -> dict[str, Any]:
    return {**inputs(BY_LABEL[label]), **WORDS}


def qwen(config: type, vision: dict[str, Any]) -> Callable[[], Any]:
    return lambda: config(vision_config=vision, text_config=LANGUAGE, **SPECIAL)


def packed_and_words() -> dict[str, Any]:
    """Return a text with one image of 4 x 8 patches, which are 8 tokens of it."""
    words = torch.tensor([[5, 32, *[30] * 8, 33, 7]])
    generator = torch.Generator().manual_seed(1)
    return {
        "input_ids": words,
        "mm_token_type_ids": (words == 30).int(),
        "pixel_values": torch.randn(32, 3 * 2 * 8 * 8, generator=generator),
        "image_grid_thw": torch.tensor([[1, 4, 8]]),
    }


def masked_images() -> dict[str, Any]:
    return {**inputs(BY_LABEL["ViT"]), "bool_masked_pos": torch.arange(9).expand(2, -1) % 2 == 0}


def masked_videos() -> dict[str, Any]:
    return {**inputs(BY_LABEL["VideoMAE"]), "bool_masked_pos": torch.arange(18).expand(2, -1) % 3 == 0}


QWEN_VISION = {**QWEN, "hidden_size": 32}
QWEN_2_5_VISION = {"hidden_size": 32, "depth": 2, "num_heads": 2, "patch_size": 8, **WINDOWS, "out_hidden_size": 32}
CASES = [
    Wrapper(
        "AutoModel", transformers.CLIPModel, both(transformers.CLIPConfig, **IMAGE), lambda: images_and_words("CLIP")
    ),
    Wrapper(
        "AutoModel",
        transformers.SiglipModel,
        both(transformers.SiglipConfig, **IMAGE),
        lambda: images_and_words("SigLIP"),
    ),
    Wrapper(
        "AutoModel",
        transformers.Siglip2Model,
        both(transformers.Siglip2Config, **FLEXIBLE),
        lambda: images_and_words("SigLIP 2"),
    ),
    Wrapper("AutoModel", transformers.Qwen2VLModel, qwen(transformers.Qwen2VLConfig, QWEN_VISION), packed_and_words),
    Wrapper(
        "AutoModelForImageTextToText",
        transformers.Qwen2VLForConditionalGeneration,
        qwen(transformers.Qwen2VLConfig, QWEN_VISION),
        packed_and_words,
    ),
    Wrapper(
        "AutoModel",
        transformers.Qwen2_5_VLModel,
        qwen(transformers.Qwen2_5_VLConfig, QWEN_2_5_VISION),
        packed_and_words,
    ),
    Wrapper(
        "AutoModelForImageTextToText",
        transformers.Qwen2_5_VLForConditionalGeneration,
        qwen(transformers.Qwen2_5_VLConfig, QWEN_2_5_VISION),
        packed_and_words,
    ),
    Wrapper(
        "AutoModelForMaskedImageModeling",
        transformers.ViTForMaskedImageModeling,
        lambda: transformers.ViTConfig(**SMALL, **IMAGE, encoder_stride=8),
        masked_images,
    ),
    Wrapper(
        "AutoModelForPreTraining",
        transformers.VideoMAEForPreTraining,
        lambda: transformers.VideoMAEConfig(
            **SMALL,
            **IMAGE,
            num_frames=4,
            decoder_num_hidden_layers=1,
            decoder_hidden_size=16,
            decoder_num_attention_heads=1,
        ),
        masked_videos,
    ),
]
STARTS = [(case, start) for case in CASES for start in ("identity", "rope") if start == "identity" or "Qwen" in case.id]


def make(case: Wrapper) -> Any:
    torch.manual_seed(0)
    model = case.model(case.config())
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.add_(0.1 * torch.randn_like(parameter))
            else:
                parameter.normal_(std=1.0 if "position" in name else 0.3 if parameter.ndim > 1 else 0.1)
    return model.eval()


def output(model: Any, given: dict[str, Any]) -> Tensor:
    found = model(**given)
    for name in ("logits_per_image", "logits", "reconstruction", "last_hidden_state"):
        if getattr(found, name, None) is not None:
            return getattr(found, name)
    raise AssertionError(f"no output among {list(found)}")


@pytest.mark.parametrize(("case", "start"), STARTS, ids=lambda value: getattr(value, "id", value))
def test_models_around_a_tower(case, start, tmp_path):
    model, given = make(case), case.given()
    rotated = convert(model, "liere8", start)
    assert isinstance(rotated, case.model)
    assert isinstance(tower_of(rotated), RotatedTower)
    with torch.no_grad():
        expected = output(model, given)
        assert_same(output(rotated, given), expected, 2e-5)
        assert difference(output(with_random_generators(rotated), given), expected) > 1e-3
    output(rotated.train(), given).square().mean().backward()
    assert (rotated.encoding.generators.grad != 0).all()
    rotated.eval().save_pretrained(tmp_path)
    loaded = getattr(transformers, case.auto).from_pretrained(tmp_path)
    assert type(loaded) is type(rotated)
    with torch.no_grad():
        assert torch.equal(output(loaded, given), output(rotated, given))


@pytest.mark.parametrize(
    ("case", "start"), [s for s in STARTS if "ForMasked" not in s[0].id], ids=lambda value: getattr(value, "id", value)
)
def test_the_tower_is_a_conversion_by_itself(case, start, tmp_path):
    rotated = with_random_generators(convert(make(case), "liere8", start))
    tower = tower_of(rotated)
    tower.save_pretrained(tmp_path / "tower")
    loaded = transformers.AutoModel.from_pretrained(tmp_path / "tower")
    assert type(loaded) is type(tower)
    assert type(loaded.config) is type(tower.config)
    assert loaded.config.liere == tower.config.liere == rotated.config.liere
    state, again = tower.state_dict(), loaded.state_dict()
    assert list(state) == list(again)
    assert all(torch.equal(state[name], again[name]) for name in state)


def test_a_wide_tower_inside_is_saved(tmp_path):
    rotated = with_random_generators(convert(make(CASES[0])))
    given = CASES[0].given()
    with torch.no_grad():
        expected = output(rotated, given)
        rotated.vision_model = widen(rotated.vision_model, 16)
        assert_same(output(rotated, given), expected)
    rotated.save_pretrained(tmp_path)
    loaded = transformers.AutoModel.from_pretrained(tmp_path)
    assert loaded.encoding.block_size == 16
    assert loaded.config.liere == loaded.vision_model.config.liere == rotated.config.liere
    with torch.no_grad():
        assert torch.equal(output(loaded, given), output(rotated, given))
