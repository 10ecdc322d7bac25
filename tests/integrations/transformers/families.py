"""The models that are converted in the tests, and listed in docs/how-to/transformers.md: tiny, with random weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers.models.qwen2_5_vl.configuration_qwen2_5_vl import Qwen2_5_VLVisionConfig
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VisionTransformerPretrainedModel
from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VisionTransformerPretrainedModel

from liere.integrations.transformers import convert

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
IMAGE = {"image_size": 24, "patch_size": 8}
FLEXIBLE = {"num_patches": 9, "patch_size": 8}
LABELS = {"num_labels": 5}


def _nested(config: type, text: dict[str, Any]) -> Callable[..., Any]:
    def build(**options: Any) -> Any:
        vision = {name: options.pop(name) for name in (*SMALL, *IMAGE, *FLEXIBLE) if name in options}
        return config(vision_config=vision, text_config=text, **options)

    return build


TEXT = {**SMALL, "vocab_size": 20, "max_position_embeddings": 8, "projection_dim": 32}


@dataclass(frozen=True)
class Family:
    """A kind of model.

    Attributes:
        label: What it is called in the documentation.
        model: Its class.
        config: Makes its configuration.
        options: Arguments of the configuration, besides those that make it small.
        rope: The kind of its RoPE, if it has one.
        auto: The class that loads it; None if that is its own.
        absolute: Whether it has an absolute embedding.
        sizes: How it takes images of another size: `"free"`, with `"interpolate_pos_encoding"`, or not at all.
    """

    label: str
    model: type[nn.Module]
    config: Callable[..., Any]
    options: dict[str, Any] = field(default_factory=dict)
    rope: str | None = None
    auto: str | None = "AutoModel"
    absolute: bool = True
    sizes: str | None = "interpolate_pos_encoding"

    @property
    def id(self) -> str:
        """What tests call it."""
        return self.model.__name__

    @property
    def is_packed(self) -> bool:
        """Whether it takes the patches of all images in one sequence."""
        return self.label.startswith("Qwen")

    @property
    def is_flexible(self) -> bool:
        """Whether it takes the patches of images of different sizes, padded."""
        return self.label == "SigLIP 2"


REGISTERS = {"mlp_ratio": 2, "num_register_tokens": 2}
WINDOWS = {"window_size": 32, "fullatt_block_indexes": [1], "out_hidden_size": 48, "intermediate_size": 48}
QWEN = {"embed_dim": 32, "depth": 2, "num_heads": 2, "hidden_size": 48, "patch_size": 8, "mlp_ratio": 2}
FAMILIES = [
    Family("ViT", transformers.ViTModel, transformers.ViTConfig),
    Family(
        "ViT",
        transformers.ViTForImageClassification,
        transformers.ViTConfig,
        LABELS,
        auto="AutoModelForImageClassification",
    ),
    Family("DINOv2", transformers.Dinov2Model, transformers.Dinov2Config, {"mlp_ratio": 2}, sizes="free"),
    Family(
        "DINOv2",
        transformers.Dinov2ForImageClassification,
        transformers.Dinov2Config,
        {"mlp_ratio": 2, **LABELS},
        auto="AutoModelForImageClassification",
        sizes="free",
    ),
    Family(
        "DINOv2 with registers",
        transformers.Dinov2WithRegistersModel,
        transformers.Dinov2WithRegistersConfig,
        REGISTERS,
        sizes="free",
    ),
    Family(
        "DINOv2 with registers",
        transformers.Dinov2WithRegistersForImageClassification,
        transformers.Dinov2WithRegistersConfig,
        {**REGISTERS, **LABELS},
        auto="AutoModelForImageClassification",
        sizes="free",
    ),
    Family(
        "DINOv3",
        transformers.DINOv3ViTModel,
        transformers.DINOv3ViTConfig,
        {"num_register_tokens": 2},
        rope="centered",
        absolute=False,
        sizes="free",
    ),
    Family("CLIP", transformers.CLIPVisionModel, transformers.CLIPVisionConfig),
    Family("CLIP", transformers.CLIPVisionModelWithProjection, transformers.CLIPVisionConfig, auto=None),
    Family(
        "CLIP",
        transformers.CLIPForImageClassification,
        _nested(transformers.CLIPConfig, TEXT),
        LABELS,
        auto="AutoModelForImageClassification",
    ),
    Family("SigLIP", transformers.SiglipVisionModel, transformers.SiglipVisionConfig),
    Family(
        "SigLIP",
        transformers.SiglipForImageClassification,
        _nested(transformers.SiglipConfig, TEXT),
        LABELS,
        auto="AutoModelForImageClassification",
    ),
    Family("SigLIP 2", transformers.Siglip2VisionModel, transformers.Siglip2VisionConfig, sizes="free"),
    Family(
        "SigLIP 2",
        transformers.Siglip2ForImageClassification,
        _nested(transformers.Siglip2Config, TEXT),
        LABELS,
        auto="AutoModelForImageClassification",
        sizes="free",
    ),
    Family("VideoMAE", transformers.VideoMAEModel, transformers.VideoMAEConfig, {"num_frames": 4}, sizes=None),
    Family(
        "VideoMAE",
        transformers.VideoMAEForVideoClassification,
        transformers.VideoMAEConfig,
        {"num_frames": 4, **LABELS},
        auto="AutoModelForVideoClassification",
        sizes=None,
    ),
    Family(
        "Qwen2-VL",
        Qwen2VisionTransformerPretrainedModel,
        Qwen2VLVisionConfig,
        QWEN,
        rope="axial",
        absolute=False,
        sizes="free",
    ),
    Family(
        "Qwen2.5-VL",
        Qwen2_5_VisionTransformerPretrainedModel,
        Qwen2_5_VLVisionConfig,
        {"hidden_size": 32, "depth": 2, "num_heads": 2, "patch_size": 8, **WINDOWS},
        rope="axial",
        absolute=False,
        sizes="free",
    ),
]
STARTS = [
    (family, start) for family in FAMILIES for start in ("identity", "rope") if start == "identity" or family.rope
]
TOWERS = [(family, start) for family, start in STARTS if family.auto == "AutoModel"]
GRID, OTHER_GRID = (3, 3), (2, 4)
QWEN_GRIDS, OTHER_QWEN_GRIDS = [[1, 4, 8], [2, 2, 4]], [[1, 2, 6]]
FLEXIBLE_GRIDS, OTHER_FLEXIBLE_GRIDS = [[3, 3], [2, 4]], [[4, 2], [2, 6]]


def make(family: Family, implementation: str = "sdpa") -> Any:
    """Return a small model with random weights, in eval mode, whose outputs depend on positions."""
    torch.manual_seed(0)
    sizes = {} if family.is_packed else {**SMALL, **(FLEXIBLE if family.is_flexible else IMAGE)}
    config = family.config(**sizes, **family.options)
    model = family.model._from_config(config, attn_implementation=implementation)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.add_(0.1 * torch.randn_like(parameter))
            elif "lambda1" in name:
                parameter.fill_(1.0)
            else:
                parameter.normal_(std=1.0 if "position" in name else 0.3 if parameter.ndim > 1 else 0.1)
    return model.eval()


def inputs(family: Family, other: bool = False, batch: int = 2) -> dict[str, Any]:
    """Return random images or videos."""
    generator = torch.Generator().manual_seed(1)
    if family.is_packed:
        grids = torch.tensor(OTHER_QWEN_GRIDS if other else QWEN_GRIDS)
        patches = torch.randn(int(grids.prod(-1).sum()), 3 * 2 * 8 * 8, generator=generator)
        return {"hidden_states": patches, "grid_thw": grids}
    if family.is_flexible:
        shapes = torch.tensor(OTHER_FLEXIBLE_GRIDS if other else FLEXIBLE_GRIDS)
        mask = torch.arange(int(shapes.prod(-1).max()) + 1) < shapes.prod(-1, keepdim=True)
        patches = torch.randn(*mask.shape, 3 * 8 * 8, generator=generator) * mask[..., None]
        return {"pixel_values": patches, "pixel_attention_mask": mask.long(), "spatial_shapes": shapes}
    rows, columns = OTHER_GRID if other else GRID
    frames = [4] if family.label == "VideoMAE" else []
    pixels = torch.randn(batch, *frames, 3, rows * 8, columns * 8, generator=generator)
    flag = {"interpolate_pos_encoding": True} if other and family.sizes == "interpolate_pos_encoding" else {}
    return {"pixel_values": pixels, **flag}


def run(model: nn.Module, given: dict[str, Any]) -> Tensor:
    """Return the logits, or the tokens after the last layer."""
    found = model(**given)
    tokens = found.logits if hasattr(found, "logits") else found.last_hidden_state
    mask = given.get("pixel_attention_mask")
    return tokens if mask is None or hasattr(found, "logits") else tokens[mask.bool()]


def converted(family: Family, start: str = "identity", **options: Any) -> tuple[Any, Any]:
    """Return a model and its conversion."""
    model = make(family)
    return model, convert(model, "liere8", start, **options)


def with_random_generators(model: Any) -> Any:
    """Change the generators of a converted model."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        own = model.encoding.generators
        own.add_(torch.randn(own.shape, generator=generator))
    return model


def difference(found: Tensor, expected: Tensor) -> float:
    """Return the largest difference, relative to the largest entry."""
    found, expected = found.detach(), expected.detach()
    return float((found - expected).abs().max() / expected.abs().max())


def assert_same(found: Tensor, expected: Tensor, tolerance: float = 1e-5) -> None:
    assert found.shape == expected.shape
    assert difference(found, expected) < tolerance
