"""What a comparison compares unless told otherwise."""

from __future__ import annotations

__all__ = ["PAPER_ENCODINGS"]

PAPER_ENCODINGS = ("absolute:init_std=1", "absolute", "visionllama", "rope_mixed", "liere8", "liere")
"""The paper's, with absolute positions twice: as published (deviation 1), and as in timm (0.02).

Which of these two is better depends on the data.
"""
