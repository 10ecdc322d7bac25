"""Configurations and classes of converted models, known to `AutoConfig`, `AutoModel` and their like.

A conversion of a model with the configuration `ViTConfig` of type "vit" has the configuration `LiereViTConfig` of type
"liere_vit": the same, with the recipe of the conversion.
"""

from __future__ import annotations

from typing import Any

import transformers
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VisionTransformerPretrainedModel
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VisionTransformerPretrainedModel

from liere.integrations.transformers.models import rotated_class

__all__ = ["CONFIGS", "SUPPORTED"]

MODELS: dict[Any, list[Any]] = {
    transformers.AutoModel: [
        transformers.ViTModel,
        transformers.Dinov2Model,
        transformers.Dinov2WithRegistersModel,
        transformers.DINOv3ViTModel,
        transformers.CLIPVisionModel,
        transformers.CLIPModel,
        transformers.SiglipVisionModel,
        transformers.SiglipModel,
        transformers.Siglip2VisionModel,
        transformers.Siglip2Model,
        transformers.VideoMAEModel,
        Qwen2VisionTransformerPretrainedModel,
        transformers.Qwen2VLModel,
        Qwen2_5_VisionTransformerPretrainedModel,
        transformers.Qwen2_5_VLModel,
    ],
    transformers.AutoModelForImageClassification: [
        transformers.ViTForImageClassification,
        transformers.Dinov2ForImageClassification,
        transformers.Dinov2WithRegistersForImageClassification,
        transformers.CLIPForImageClassification,
        transformers.SiglipForImageClassification,
        transformers.Siglip2ForImageClassification,
    ],
    transformers.AutoModelForVideoClassification: [transformers.VideoMAEForVideoClassification],
    transformers.AutoModelForMaskedImageModeling: [transformers.ViTForMaskedImageModeling],
    transformers.AutoModelForPreTraining: [transformers.VideoMAEForPreTraining],
    transformers.AutoModelForImageTextToText: [
        transformers.Qwen2VLForConditionalGeneration,
        transformers.Qwen2_5_VLForConditionalGeneration,
    ],
    None: [transformers.CLIPVisionModelWithProjection],  # its own class loads it: type(model).from_pretrained
}
SUPPORTED = tuple(model for models in MODELS.values() for model in models)
"""Classes that can be converted."""
CONFIGS: dict[type, type] = {}
"""The configuration class of conversions, by that of the original."""


def _config_class(original: type[Any]) -> type[Any]:
    if original not in CONFIGS:
        name, kind = f"Liere{original.__name__}", f"liere_{original.model_type}"
        cls = type(name, (original,), {"model_type": kind, "liere": None, "__module__": __name__})
        globals()[name] = CONFIGS[original] = cls  # where pickle finds it
        transformers.AutoConfig.register(kind, cls)
    return CONFIGS[original]


def _register(auto: Any, original: Any) -> None:
    cls: Any = rotated_class(original)
    cls.config_class = _config_class(original.config_class)
    if auto is not None:
        auto.register(cls.config_class, cls)


for _auto, _models in MODELS.items():
    for _model in _models:
        _register(_auto, _model)
