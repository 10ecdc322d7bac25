"""Every architecture of timm of the classes that can be converted, small: none is forgotten, none is silently wrong."""

from __future__ import annotations

import pytest
import timm
import torch
from timm.models._registry import _model_to_module

from liere.integrations.timm import convert
from tests.integrations.timm.families import difference, randomize

MODULES = {"vision_transformer", "eva", "naflexvit", "deit"}
NAMES = [name for name in timm.list_models() if _model_to_module[name] in MODULES]
REFUSED = ("_xp_", "_dwee_", "_pwee_", "_dpwee_", "_dlittle_")
"""Parallel and differential attention."""
SMALL = {"embed_dim": 64, "num_heads": 2, "depth": 2, "num_classes": 7}


def make(name: str) -> tuple[torch.nn.Module, int]:
    """Return a small model and the side of its patches."""
    torch.manual_seed(0)
    patch = next((side for side in (8, 14, 32) if f"patch{side}_" in f"{name}_"), 16)
    options: dict = (
        {} if name.startswith("naflexvit") else {"img_size": (4 * patch, 3 * patch), "dynamic_img_size": True}
    )
    if "sapiens2" in name:
        options["num_kv_heads"] = 1
    if "giant_patch14" in name and ("dinov2" in name or "tips" in name):
        options["mlp_ratio"] = 4  # theirs fits only their own width
    model = timm.create_model(name, **SMALL, **options).eval()
    randomize(model)
    return model, patch


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_logits_are_those_of_the_original_at_two_resolutions(name):
    model, patch = make(name)
    if any(part in name for part in REFUSED):
        with pytest.raises(ValueError, match=r"blocks of type .* which cannot be converted: timm's classes that can"):
            convert(model)
        return
    generator = torch.Generator().manual_seed(1)
    inputs = [
        torch.randn(2, 3, rows * patch, columns * patch, generator=generator) for rows, columns in [(4, 3), (3, 5)]
    ]
    for start in ["identity"] if getattr(model, "rope", None) is None else ["identity", "rope"]:
        rotated = convert(model, "liere8", start)
        with torch.no_grad():
            for x in inputs:
                assert difference(rotated(x), model(x)) < 1e-5
            rotated.encoding.generators.add_(torch.randn(rotated.encoding.generators.shape, generator=generator))
            assert difference(rotated(inputs[0]), model(inputs[0])) > 1e-2
