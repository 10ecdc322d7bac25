"""How a report names and colours encodings, also those that other pictures do not know."""

from __future__ import annotations

import re
from itertools import cycle
from typing import Any

from liere.report.drawing import COLOURS, encoding_label

__all__ = ["colours_of", "plain_label"]

SPARE_COLOURS = ("#3d7fb5", "#6f9a37", "#b35aa5", "#8a6d4f", "#2f8f6b")
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def plain_label(name: str) -> str:
    """Return an encoding's name as a reader writes it, without markup: it goes to pages, terminals and pictures alike.

    Example:
        >>> plain_label("liere8"), plain_label("liere32"), plain_label("rope_mixed"), plain_label("sincos")
        ('LieRE₈', 'LieRE₃₂', 'RoPE-Mixed', 'sincos')
    """
    text = re.sub(r"^liere(\d+)$", r"LieRE$_\1$", encoding_label(name))
    return re.sub(r"\$_(\d+)\$", lambda match: match[1].translate(SUBSCRIPTS), text)


def colours_of(comparison: dict[str, Any]) -> dict[str, str]:
    """Return a colour for each encoding: its own, or a spare one, so that lines of one picture stay apart."""
    spare = cycle(SPARE_COLOURS)
    names = dict.fromkeys(part["encoding"] for part in [*comparison["encodings"], *comparison["runs"]])
    return {name: COLOURS.get(name) or next(spare) for name in names}
