"""The vision towers of transformers that can be converted: where their patches are, and what encodes positions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers.models.clip.modeling_clip import CLIPVisionModel
from transformers.models.dinov2.modeling_dinov2 import Dinov2Model
from transformers.models.dinov2_with_registers.modeling_dinov2_with_registers import Dinov2WithRegistersModel
from transformers.models.dinov3_vit.modeling_dinov3_vit import DINOv3ViTModel, DINOv3ViTRopePositionEmbedding
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import (
    Qwen2_5_VisionTransformerPretrainedModel,
    Qwen2_5_VLVisionRotaryEmbedding,
)
from transformers.models.qwen2_vl.modeling_qwen2_vl import (
    Qwen2VisionTransformerPretrainedModel,
    Qwen2VLVisionRotaryEmbedding,
)
from transformers.models.siglip.modeling_siglip import SiglipVisionModel
from transformers.models.siglip2.modeling_siglip2 import Siglip2VisionModel
from transformers.models.videomae.modeling_videomae import VideoMAEModel
from transformers.models.vit.modeling_vit import ViTModel

from liere.integrations.mixing import Mixed, mix_in
from liere.integrations.position_rules import RopeRule

__all__ = ["FAMILIES", "Family", "WithoutAbsolute", "family_of", "two"]


@dataclass(frozen=True)
class Family:
    """A kind of vision tower.

    Attributes:
        name: What error messages and pages call it.
        tower: Its class.
        drop_absolute: Removes the absolute position embedding of a tower, if it has any.
        num_prefix_tokens: Number of tokens before the patches, from the configuration.
        rope: Name of the module that computes its RoPE, if it has one.
        rope_class: Class of that module.
        rope_rule: The positions that the RoPE reads, from the configuration.
        frequency: Radians per unit of position and unit of the RoPE's `inv_freq`.
    """

    name: str
    tower: type[nn.Module]
    drop_absolute: Callable[[Any], None] = lambda tower: None
    num_prefix_tokens: Callable[[Any], int] = lambda config: 0
    rope: str | None = None
    rope_class: type[Any] = nn.Identity
    rope_rule: Callable[[Any], RopeRule] = lambda config: RopeRule()
    frequency: float = 1.0

    def grid(self, config: Any) -> tuple[int, ...]:
        """Return the training grid: (rows, columns), or (frames, rows, columns)."""
        if hasattr(config, "num_patches"):  # SigLIP 2 takes images of any size, and has a square of embeddings
            side = math.isqrt(config.num_patches)
            return (side, side)
        if not hasattr(config, "image_size"):  # Qwen2-VL takes images of any size, and names none
            return (16, 16)
        image = [side // patch for side, patch in zip(two(config.image_size), two(config.patch_size), strict=True)]
        frames = [config.num_frames // config.tubelet_size] if hasattr(config, "tubelet_size") else []
        return (*frames, *image)

    def frequencies(self, tower: Any) -> Tensor:
        """Return radians per unit of position `[1, 2, 1, planes]`: half turn with rows, half with columns.

        They are those of the tower's own RoPE. If that was removed already, or has no numbers yet because the model is
        being loaded, they are computed from the configuration.
        """
        assert self.rope is not None
        own = getattr(getattr(tower, self.rope), "inv_freq", None)
        if own is None or own.is_meta:
            with torch.device("cpu"):
                own = self.rope_class(tower.config).inv_freq
        bands = own.detach().to(torch.promote_types(own.dtype, torch.float32)) * self.frequency
        nothing = torch.zeros_like(bands)
        return torch.stack([torch.cat([bands, nothing]), torch.cat([nothing, bands])])[None, :, None]


class WithoutAbsolute(Mixed, nn.Module):
    """Embeddings of patches that add no position. All image sizes fit."""

    def forward(self, *args: Any, **options: Any) -> Tensor:
        """Return the tokens."""
        return super().forward(*args, **{**options, "interpolate_pos_encoding": True})

    def interpolate_pos_encoding(self, embeddings: Tensor, height: int, width: int) -> Tensor:
        """Return what is added to the tokens."""
        return embeddings.new_zeros(())


class _Dinov2WithoutAbsolute(WithoutAbsolute):
    def forward(self, *args: Any, **options: Any) -> Tensor:
        """Return the tokens; DINOv2 checks by itself whether it has an embedding."""
        return super(WithoutAbsolute, self).forward(*args, **options)


class _Siglip2WithoutAbsolute(WithoutAbsolute):
    patch_embedding: Any

    def forward(self, pixel_values: Tensor, spatial_shapes: Tensor) -> Tensor:
        """Return the tokens."""
        return self.patch_embedding(pixel_values.to(self.patch_embedding.weight.dtype))


def _drop(name: str, mixin: type = WithoutAbsolute) -> Callable[[Any], None]:
    def drop(tower: Any) -> None:
        embeddings = tower.embeddings
        setattr(embeddings, name, None)
        embeddings.__class__ = mix_in(mixin, type(embeddings))

    return drop


def _drop_table(tower: Any) -> None:
    """Zero the fixed table of VideoMAE, a plain tensor which is not among its parameters or buffers."""
    tower.embeddings.position_embeddings = tower.embeddings.position_embeddings * 0


def _dinov3_rule(config: Any) -> RopeRule:
    moves = config.pos_embed_shift, config.pos_embed_jitter, config.pos_embed_rescale
    return RopeRule("centered", shift=moves[0], jitter=moves[1], rescale=moves[2])


def two(size: int | Sequence[int]) -> tuple[int, int]:
    """Return a size as (rows, columns).

    Example:
        >>> two(16), two([8, 16])
        ((16, 16), (8, 16))
    """
    rows, columns = (size, size) if isinstance(size, int) else size
    return rows, columns


FAMILIES = [
    Family("ViT", ViTModel, _drop("position_embeddings"), lambda config: 1),
    Family("DINOv2", Dinov2Model, _drop("position_embeddings", _Dinov2WithoutAbsolute), lambda config: 1),
    Family(
        "DINOv2 with registers",
        Dinov2WithRegistersModel,
        _drop("position_embeddings", _Dinov2WithoutAbsolute),
        lambda config: 1 + config.num_register_tokens,
    ),
    Family(
        "DINOv3",
        DINOv3ViTModel,
        num_prefix_tokens=lambda config: 1 + config.num_register_tokens,
        rope="rope_embeddings",
        rope_class=DINOv3ViTRopePositionEmbedding,
        rope_rule=_dinov3_rule,
        frequency=2 * torch.pi,
    ),
    Family("CLIP", CLIPVisionModel, _drop("position_embedding"), lambda config: 1),
    Family("SigLIP", SiglipVisionModel, _drop("position_embedding")),
    Family("SigLIP 2", Siglip2VisionModel, _drop("position_embedding", _Siglip2WithoutAbsolute)),
    Family("VideoMAE", VideoMAEModel, _drop_table),
    Family(
        "Qwen2-VL",
        Qwen2VisionTransformerPretrainedModel,
        rope="rotary_pos_emb",
        rope_class=Qwen2VLVisionRotaryEmbedding,
    ),
    Family(
        "Qwen2.5-VL",
        Qwen2_5_VisionTransformerPretrainedModel,
        rope="rotary_pos_emb",
        rope_class=Qwen2_5_VLVisionRotaryEmbedding,
    ),
]


def family_of(tower: nn.Module) -> Family | None:
    """Return the family of a tower, or None if it is no tower of a known family."""
    return next((family for family in FAMILIES if isinstance(tower, family.tower)), None)
