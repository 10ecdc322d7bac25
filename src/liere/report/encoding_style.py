"""Names and colors of encodings in pages and pictures."""

from __future__ import annotations

import re
from itertools import cycle
from typing import Any

from liere.errors import visible

__all__ = ["COLORS", "SPARE_COLORS", "colors_of", "encoding_color", "encoding_label", "plain_label", "short_label"]

COLORS = {
    "absolute": "#8d99ae",
    "visionllama": "#4ba3a5",
    "rope_mixed": "#e09f3e",
    "liere8": "#5a55d6",
    "liere": "#d1495b",
}
SPARE_COLORS = ("#3d7fb5", "#6f9a37", "#b35aa5", "#8a6d4f", "#2f8f6b")
LABELS = {
    "absolute": "absolute",
    "visionllama": "VisionLLaMA",
    "rope_mixed": "RoPE-Mixed",
    "liere8": "LieRE$_8$",
    "liere": "LieRE (dense)",
}
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
LONGEST_LABEL = 20  # characters; longer labels would leave no room for the chart


def encoding_color(name: str) -> str:
    """Return the color of an encoding in every picture."""
    return COLORS.get(name, COLORS["liere8"])


def encoding_label(name: str) -> str:
    """Return an encoding's display name, which may contain math markup."""
    return LABELS.get(name, name)


def plain_label(name: str) -> str:
    """Return an encoding's display name without markup, for pages, terminals and pictures.

    The configuration of a run may name any text, and control characters would break pictures.

    Example:
        >>> plain_label("liere8"), plain_label("liere32"), plain_label("rope_mixed"), plain_label("sincos")
        ('LieRE₈', 'LieRE₃₂', 'RoPE-Mixed', 'sincos')
    """
    text = re.sub(r"^liere(\d+)$", r"LieRE$_\1$", encoding_label(name))
    return visible(re.sub(r"\$_(\d+)\$", lambda match: match[1].translate(SUBSCRIPTS), text))


def short_label(name: str) -> str:
    """Return an encoding's display name, shortened if it is long."""
    label = plain_label(name)
    return label if len(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + "…"


def colors_of(comparison: dict[str, Any]) -> dict[str, str]:
    """Return a color for each encoding: its usual color, or a spare one so that lines remain distinguishable."""
    spare = cycle(SPARE_COLORS)
    names = dict.fromkeys(part["encoding"] for part in [*comparison["encodings"], *comparison["runs"]])
    return {name: COLORS.get(name) or next(spare) for name in names}
