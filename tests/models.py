"""Small models for tests."""

from __future__ import annotations

from typing import Any

import torch

from liere import (
    RotaryEncoding,
    TransformerShape,
    VisionTransformer,
    create_encoding,
    create_model,
    list_encodings,
)

SMALL = {"dim": 48, "depth": 3, "heads": 2, "mlp_dim": 40}


SHAPE = TransformerShape(grid=(4, 4), dim=48, num_heads=2, depth=3, num_prefix_tokens=1)
# Every encoding of the library; LieRE with three block sizes, including dense.
ENCODINGS = [
    known.replace("<b>", b) for known in list_encodings() for b in (["8", "5", ""] if "<b>" in known else [""])
]
ROTARY = [name for name in ENCODINGS if isinstance(create_encoding(name, SHAPE), RotaryEncoding)]


def small_model(encoding: Any = "liere8", seed: int = 0, **options: Any) -> VisionTransformer:
    """Return a model of 3 layers with 2 heads of 24 over 16 x 16 images, in eval mode."""
    torch.manual_seed(seed)
    defaults = {"image_size": 16, "patch_size": 4, "num_classes": 5, **SMALL}
    return create_model(encoding=encoding, **(defaults | options)).eval()
