"""Numbers that the paper prints, in percent."""

from __future__ import annotations

from typing import Any

__all__ = ["SPATIAL", "SPATIAL_NOTE"]

# Table "synthetic task": accuracy by image size.
SPATIAL: dict[str, dict[str, Any]] = {
    "absolute": {"label": "absolute", "accuracy": {108: 45.1, 168: 41.0, 276: 40.1}},
    "visionllama": {"label": "VisionLLaMA", "accuracy": {108: 46.4, 168: 48.6, 276: 48.6}},
    "rope_mixed": {"label": "RoPE-Mixed", "accuracy": {108: 100.0, 168: 98.6, 276: 88.6}},
    "liere8": {"label": "LieRE₈", "accuracy": {108: 99.5, 168: 99.7, 276: 99.7}},
    "liere": {"label": "LieRE₆₄", "accuracy": {108: 100.0, 168: 100.0, 276: 100.0}},
}
SPATIAL_NOTE = "ViT-B (85 M parameters), 800,000 examples"
