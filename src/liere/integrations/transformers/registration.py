"""Classes of converted models, known to `AutoModel` and its like."""

from __future__ import annotations

from typing import Any

import transformers
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VisionTransformerPretrainedModel
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VisionTransformerPretrainedModel

from liere.integrations.transformers.configurations import CONFIGS, config_class
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


def _register(auto: Any, original: Any) -> None:
    cls: Any = rotated_class(original)
    cls.config_class = config_class(original.config_class)
    if auto is not None:
        auto.register(cls.config_class, cls)


for _auto, _models in MODELS.items():
    for _model in _models:
        _register(_auto, _model)
