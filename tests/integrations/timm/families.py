"""The timm models that are converted in the tests, and listed in docs/how-to/timm.md: small ones, all else as named."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import timm
import torch
from torch import Tensor, nn

from liere.integrations.timm import convert

SMALL = {"embed_dim": 32, "num_heads": 2, "depth": 2, "num_classes": 5}


@dataclass(frozen=True)
class Family:
    """A kind of model.

    Attributes:
        label: What it is called in the documentation.
        name: The model that timm knows.
        rope: The kind of its RoPE, if it has one.
        options: Arguments of `timm.create_model`, besides those that make it small.
        variant: What the options change, where it is not the model as timm has it.
    """

    label: str
    name: str
    rope: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    variant: str = ""

    @property
    def id(self) -> str:
        """What tests call it."""
        return f"{self.name} {self.variant}".strip()

    @property
    def patch(self) -> int:
        """Side of a patch."""
        return 14 if "patch14" in self.name else 16

    @property
    def is_flexible(self) -> bool:
        """Whether images of a batch may have different sizes."""
        return self.name.startswith("naflexvit")


ROPE = {"rope_type": "axial", "rope_grid_offset": 0.5, "rope_ref_feat_shape": (5, 4), "class_token": True}
FAMILIES = [
    Family("ViT", "vit_small_patch16_224"),
    Family("ViT", "vit_small_patch16_224", options={"qk_norm": True, "init_values": 1.0}, variant="with q/k norm"),
    Family("ViT", "vit_small_patch16_18x2_224", variant="with two attentions per block"),
    Family("ViT", "vit_base_patch16_rpn_224", variant="with norm after the blocks"),
    Family("CLIP", "vit_base_patch16_clip_224"),
    Family("SigLIP", "vit_base_patch16_siglip_224", variant="with attention pooling"),
    Family("DINOv2", "vit_small_patch14_reg4_dinov2"),
    Family("BEiT-3", "beit3_base_patch16_224"),
    Family("DeiT", "deit_tiny_distilled_patch16_224"),
    Family("DeiT III", "deit3_small_patch16_224"),
    Family("EVA", "eva_giant_patch14_224"),
    Family("EVA-02", "eva02_tiny_patch14_224", "axial"),
    Family("EVA-02", "eva02_base_patch14_224", "axial", variant="with separate q, k and v"),
    Family("EVA-02", "eva02_enormous_patch14_clip_224", variant="with norm after the blocks"),
    Family("RoPE-ViT", "vit_small_patch16_rope_224", "axial"),
    Family("RoPE-ViT", "vit_small_patch16_rope_ape_224", "axial"),
    Family("RoPE-ViT", "vit_small_patch16_rope_mixed_224", "mixed"),
    Family("RoPE-ViT", "vit_small_patch16_rope_mixed_ape_224", "mixed"),
    Family("RoPE-ViT", "vit_medium_patch16_rope_reg1_gap_256", "axial"),
    Family("Perception Encoder", "vit_pe_core_tiny_patch16_384", "axial"),
    Family("DINOv3", "vit_small_patch16_dinov3", "centered"),
    Family("DINOv3", "vit_small_plus_patch16_dinov3", "centered"),
    Family("Sapiens2", "vit_base_patch16_sapiens2", "centered", {"num_kv_heads": 1}, "with shared keys and values"),
    Family("NaFlexViT", "naflexvit_base_patch16_gap"),
    Family("NaFlexViT", "naflexvit_base_patch16_map"),
    Family("NaFlexViT", "naflexvit_base_patch16_parfac_gap"),
    Family("NaFlexViT", "naflexvit_base_patch16_gap", "axial", ROPE, "with axial RoPE"),
    Family("NaFlexViT", "naflexvit_base_patch16_gap", "mixed", {"rope_type": "mixed"}, "with mixed RoPE"),
    Family(
        "NaFlexViT",
        "naflexvit_base_patch16_gap",
        "centered",
        {"rope_type": "dinov3", "rope_temperature": 100.0, "rope_rotate_half": True},
        "with the RoPE of DINOv3",
    ),
    Family(
        "NaFlexViT",
        "naflexvit_base_patch16_gap",
        "interleaved",
        {"rope_type": "mrope", "rope_mrope_section": (2, 3, 3)},
        "with interleaved M-RoPE",
    ),
]
WITH_ROPE = [family for family in FAMILIES if family.rope]
FLEXIBLE = [family for family in FAMILIES if family.is_flexible]
STARTS = [
    (family, start) for family in FAMILIES for start in ("identity", "rope") if start == "identity" or family.rope
]
SIZED_STARTS = [(family, start) for family, start in STARTS if not family.is_flexible]
FLEXIBLE_STARTS = [(family, start) for family, start in STARTS if family.is_flexible]
GRID, OTHER_GRID = (3, 3), (2, 4)


def make(family: Family, **options: Any) -> nn.Module:
    """Return a small model with random weights, in eval mode, whose logits depend on positions."""
    torch.manual_seed(0)
    sized = {} if family.is_flexible else {"img_size": GRID[0] * family.patch}
    model = timm.create_model(family.name, **{**SMALL, **sized, **family.options, **options})
    randomize(model)
    return model.eval()


def randomize(model: nn.Module) -> None:
    """Draw weights so that attention is not uniform, LayerScale hides nothing, and all positions differ."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.add_(0.1 * torch.randn_like(parameter))
            elif "gamma" in name or ".ls" in name:
                parameter.fill_(1.0)
            elif "freqs" in name:
                parameter.normal_()
            else:
                parameter.normal_(std=1.0 if "pos_embed" in name else 0.3 if parameter.ndim > 1 else 0.1)


def images(family: Family, grid: tuple[int, int] = GRID, batch: int = 2) -> Tensor:
    """Return random images."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(batch, 3, grid[0] * family.patch, grid[1] * family.patch, generator=generator)


def converted(family: Family, start: str = "identity", **options: Any) -> tuple[nn.Module, nn.Module]:
    """Return a model and its conversion."""
    model = make(family)
    return model, convert(model, "liere8", start, **options)


def with_random_generators(model: nn.Module, scale: float = 1.0) -> nn.Module:
    """Change the generators of a converted model."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        own = model.encoding.generators
        own.add_(scale * torch.randn(own.shape, generator=generator))
    return model


def assert_same(found: Tensor, expected: Tensor, tolerance: float = 1e-5) -> None:
    assert found.shape == expected.shape
    assert difference(found, expected) < tolerance


def difference(found: Tensor, expected: Tensor) -> float:
    """Return the largest difference, relative to the largest entry."""
    found, expected = found.detach(), expected.detach()
    return float((found - expected).abs().max() / expected.abs().max())


def naflex_batch(grids: list[tuple[int, int]], patch: int = 16) -> dict[str, Tensor]:
    """Return random patches of images of several sizes, padded as timm's collator does."""
    generator = torch.Generator().manual_seed(3)
    length = max(rows * columns for rows, columns in grids) + 1
    patches = torch.randn(len(grids), length, 3 * patch * patch, generator=generator)
    coordinates = torch.zeros(len(grids), length, 2, dtype=torch.int64)
    valid = torch.zeros(len(grids), length, dtype=torch.bool)
    for number, (rows, columns) in enumerate(grids):
        cells = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))
        coordinates[number, : len(cells)], valid[number, : len(cells)] = cells, True
        patches[number, len(cells) :] = 0
    return {"patches": patches, "patch_coord": coordinates, "patch_valid": valid}
