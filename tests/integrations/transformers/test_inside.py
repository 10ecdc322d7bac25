"""Towers inside models that cannot be converted as a whole: the advice of errors, and saving with it."""

from __future__ import annotations

import pytest
import torch
import transformers
from torch import nn

from liere.integrations.transformers import convert
from liere.integrations.transformers.models import RotatedTower
from tests.integrations.transformers.families import FAMILIES, IMAGE, SMALL, difference, make, with_random_generators


def llava():
    torch.manual_seed(0)
    text = transformers.LlamaConfig(
        **SMALL, vocab_size=40, num_key_value_heads=2, bos_token_id=1, eos_token_id=2, pad_token_id=0
    )
    vision = transformers.CLIPVisionConfig(**SMALL, **IMAGE)
    config = transformers.LlavaConfig(vision_config=vision, text_config=text, image_token_index=30)
    return transformers.LlavaForConditionalGeneration(config).eval()


def logits(model):
    words = torch.tensor([[5, *[30] * 9, 7]])
    pixels = torch.randn(1, 3, 24, 24, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        return model(input_ids=words, pixel_values=pixels).logits


def test_a_tower_in_llava_is_saved_with_its_configuration(tmp_path):
    model = llava()
    original = logits(model)
    with pytest.raises(
        ValueError,
        match=r"cannot be converted as a whole: convert its vision tower 'model.vision_tower' and put it back, then "
        r"set its config.vision_config to the config of the converted tower",
    ):
        convert(model)
    model.model.vision_tower = with_random_generators(convert(model.model.vision_tower))
    model.config.vision_config = model.model.vision_tower.config
    expected = logits(model)
    assert difference(expected, original) > 1e-4
    model.save_pretrained(tmp_path)
    loaded = transformers.LlavaForConditionalGeneration.from_pretrained(tmp_path)
    assert isinstance(loaded.model.vision_tower, RotatedTower)
    assert torch.equal(logits(loaded), expected)
    with pytest.raises(
        TypeError, match=r"vision tower of a model of type LlavaFor.* is converted already: use widen on it"
    ):
        convert(loaded)


def test_a_converted_tower_in_a_supported_model_is_reported():
    model = make(FAMILIES[1])
    model.vit = convert(model.vit)
    with pytest.raises(TypeError, match=r"type ViTFor.* is converted already: convert the original model as a whole"):
        convert(model)
    with pytest.raises(TypeError, match="of type Sequential is converted already"):
        convert(nn.Sequential(model.vit))


def test_a_model_that_shares_the_configuration_of_its_tower_cannot_be_saved():
    class Own(transformers.PreTrainedModel):
        config_class = transformers.ViTConfig

        def __init__(self, config):
            super().__init__(config)
            self.inner = transformers.ViTModel(config)

    model = Own(transformers.ViTConfig(**SMALL, **IMAGE))
    with pytest.raises(ValueError, match="tower 'inner' and put it back, and save its state_dict, because"):
        convert(model)
