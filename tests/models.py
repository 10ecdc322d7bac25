"""Small models for tests."""

from __future__ import annotations

from typing import Any

import torch

from liere import VisionTransformer, create_model

ENCODINGS = ["none", "absolute", "sincos", "visionllama", "rope_mixed", "liere8", "liere5", "liere"]
ROTARY = ["visionllama", "rope_mixed", "liere8", "liere5", "liere"]
SMALL = {"dim": 48, "depth": 3, "heads": 2, "mlp_dim": 40}


def small_model(encoding: Any = "liere8", seed: int = 0, **options: Any) -> VisionTransformer:
    """Return a model of 3 layers with 2 heads of 24 over 16 x 16 images, in eval mode."""
    torch.manual_seed(seed)
    defaults = {"image_size": 16, "patch_size": 4, "num_classes": 5, **SMALL}
    return create_model(encoding=encoding, **(defaults | options)).eval()
