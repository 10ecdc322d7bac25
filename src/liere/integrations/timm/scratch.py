"""Models to train from scratch with timm's tools: `timm.create_model("liere_vit_small_patch16_224")`."""

from __future__ import annotations

from typing import Any

from timm.data import IMAGENET_INCEPTION_MEAN, IMAGENET_INCEPTION_STD
from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
from timm.models.vision_transformer import VisionTransformer

from liere.encodings import TransformerShape, create_encoding
from liere.encodings.liere import LieRE
from liere.errors import InputError
from liere.integrations.timm.convert import attach

__all__ = ["LiereVisionTransformer"]


class LiereVisionTransformer(VisionTransformer):  # type: ignore[misc]
    """timm's `VisionTransformer` with random generators, as `liere.create_model` starts them.

    Args:
        *args: As for `VisionTransformer`.
        encoding: Name of a LieRE encoding, such as `"liere8"`, `"liere"` (dense) or `"rope_mixed"`.
        encoding_options: Its options, such as `init_scale` or `share_heads`.
        pos_embed: `"learn"` adds an absolute embedding.
        **options: As for `VisionTransformer`.
    """

    def __init__(
        self,
        *args: Any,
        encoding: str = "liere8",
        encoding_options: dict[str, Any] | None = None,
        pos_embed: str = "none",
        **options: Any,
    ) -> None:
        super().__init__(*args, pos_embed=pos_embed, **options)
        heads, depth = options.get("num_heads", 12), len(self.blocks)
        shape = TransformerShape(self.patch_embed.grid_size, self.embed_dim, heads, depth, self.num_prefix_tokens)
        made = create_encoding(encoding, shape, **(encoding_options or {}))
        if not isinstance(made, LieRE):
            raise InputError(f"encoding {encoding!r} has no generators to learn: use 'liere8', 'liere' or 'rope_mixed'")
        attach(self, made)


def _cfg() -> dict[str, Any]:
    return {
        "num_classes": 1000,
        "input_size": (3, 224, 224),
        "pool_size": None,
        "crop_pct": 0.9,
        "interpolation": "bicubic",
        "fixed_input_size": True,
        "mean": IMAGENET_INCEPTION_MEAN,
        "std": IMAGENET_INCEPTION_STD,
        "first_conv": "patch_embed.proj",
        "classifier": "head",
    }


SIZES = {
    "liere_vit_tiny_patch16_224": {"embed_dim": 192, "depth": 12, "num_heads": 3},
    "liere_vit_small_patch16_224": {"embed_dim": 384, "depth": 12, "num_heads": 6},
    "liere_vit_base_patch16_224": {"embed_dim": 768, "depth": 12, "num_heads": 12},
}
default_cfgs = generate_default_cfgs({f"{name}.untrained": _cfg() for name in SIZES})


def _create(name: str, pretrained: bool, options: dict[str, Any]) -> Any:
    arguments = {"patch_size": 16, **SIZES[name], **options}
    feature_cfg = {"out_indices": arguments.pop("out_indices", 3), "feature_cls": "getter"}
    return build_model_with_cfg(LiereVisionTransformer, name, pretrained, feature_cfg=feature_cfg, **arguments)


@register_model  # type: ignore[untyped-decorator]
def liere_vit_tiny_patch16_224(pretrained: bool = False, **options: Any) -> Any:
    """Return a ViT-Ti/16 with LieRE; options are those of `LiereVisionTransformer`."""
    return _create("liere_vit_tiny_patch16_224", pretrained, options)


@register_model  # type: ignore[untyped-decorator]
def liere_vit_small_patch16_224(pretrained: bool = False, **options: Any) -> Any:
    """Return a ViT-S/16 with LieRE; options are those of `LiereVisionTransformer`."""
    return _create("liere_vit_small_patch16_224", pretrained, options)


@register_model  # type: ignore[untyped-decorator]
def liere_vit_base_patch16_224(pretrained: bool = False, **options: Any) -> Any:
    """Return a ViT-B/16 with LieRE; options are those of `LiereVisionTransformer`."""
    return _create("liere_vit_base_patch16_224", pretrained, options)
