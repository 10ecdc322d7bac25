"""The symbols of the spatial task, drawn as 12 x 12 masks without a font."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

__all__ = ["CELL", "DIRECTIONS", "SYMBOLS", "draw_symbols"]

CELL = 12
"""Side of a cell in pixels."""

DIRECTIONS = ("up", "right", "down", "left")
"""Directions in the order of labels; each is the one before turned clockwise by 90 degrees."""

SYMBOLS = ("", "↑", "→", "↓", "←", "Y↑", "Y→", "Y↓", "Y←", "A", "B", "C", "D", "E")
"""Contents of a cell in the order of codes; the arrow after a Y is the direction of its base."""

_ARROW_UP = """
.....##.....
....####....
...######...
..########..
.....##.....
.....##.....
.....##.....
.....##.....
.....##.....
.....##....."""

_Y_BASE_DOWN = """
..#......#..
..##....##..
...##..##...
....####....
.....##.....
.....##.....
.....##.....
.....##.....
.....##.....
.....##....."""

_LETTERS = (
    """
....####....
....####....
...##..##...
...##..##...
...##..##...
..##....##..
..########..
..########..
..##....##..
..##....##..""",
    """
..#######...
..########..
..##....##..
..##....##..
..#######...
..#######...
..##....##..
..##....##..
..########..
..#######...""",
    """
...######...
..########..
..##....##..
..##........
..##........
..##........
..##........
..##....##..
..########..
...######...""",
    """
..######....
..#######...
..##...###..
..##....##..
..##....##..
..##....##..
..##....##..
..##...###..
..#######...
..######....""",
    """
..########..
..########..
..##........
..##........
..######....
..######....
..##........
..##........
..########..
..########..""",
)


@functools.cache
def draw_symbols() -> Tensor:
    """Return the masks of all symbols, `[symbols, 12, 12]` uint8: 1 is ink.

    Example:
        >>> draw_symbols().shape == (len(SYMBOLS), CELL, CELL)
        True
    """
    up, base_down = _mask(_ARROW_UP), _mask(_Y_BASE_DOWN)
    arrows = [_turned(up, turns) for turns in range(4)]
    ys = [_turned(base_down, turns - DIRECTIONS.index("down")) for turns in range(4)]
    return torch.stack([torch.zeros_like(up), *arrows, *ys, *map(_mask, _LETTERS)])


def _mask(drawing: str) -> Tensor:
    """Return the mask of a drawing of ten lines, with an empty line added above and below."""
    lines = ["." * CELL, *drawing.split(), "." * CELL]
    return torch.tensor([[dot == "#" for dot in line] for line in lines], dtype=torch.uint8)


def _turned(mask: Tensor, quarters_clockwise: int) -> Tensor:
    return torch.rot90(mask, -quarters_clockwise)
