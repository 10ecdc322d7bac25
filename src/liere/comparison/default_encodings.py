"""The encodings that a comparison uses by default."""

from __future__ import annotations

__all__ = ["PAPER_ENCODINGS"]

PAPER_ENCODINGS = ("absolute:init_std=1", "absolute", "visionllama", "rope_mixed", "liere8", "liere")
"""The encodings of the paper, with two initializations of absolute positions.

The published code starts them with standard deviation 1, timm with 0.02. Which one is better depends on the data.
"""
