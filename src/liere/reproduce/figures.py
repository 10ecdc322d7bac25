"""Figures of reproductions: lines with intervals, an encoding a colour."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

from liere.comparison.plan import parse_encoding
from liere.evaluation.figures import COLOURS, sheet
from liere.evaluation.report.figures import CELL, Drawing, dress, figure_png, label_ends
from liere.evaluation.report.inline_svg import inline_svg
from liere.evaluation.report.names import SPARE_COLOURS
from liere.evaluation.statistics import Interval
from liere.reproduce.names import label

__all__ = ["draw_columns", "draw_curves"]


def draw_columns(
    title: str, encodings: Sequence[str], columns: Sequence[str], ours: Callable[[str, str], Interval | None]
) -> Drawing:
    """Draw a number with its interval for each encoding at each column, a line an encoding."""
    lines = {
        line_name(encoding): [
            (place, value) for place, column in enumerate(columns) if (value := ours(encoding, column)) is not None
        ]
        for encoding in encodings
    }
    colours = encoding_colours(encodings)

    def plot(ax: Any) -> None:
        aside = 0.4 / max(len(lines), 1)
        ends = {}
        for place, (name, points) in enumerate(lines.items()):
            if not points:
                continue
            x = [at + aside * (place - (len(lines) - 1) / 2) for at, _ in points]
            y = [100 * value.value for _, value in points]
            errors = [
                [100 * (value.value - value.low) for _, value in points],
                [100 * (value.high - value.value) for _, value in points],
            ]
            ax.errorbar(x, y, yerr=errors, color=colours[name], lw=1.2, elinewidth=1.1, capsize=2, marker="o", ms=4.5)
            ends[name] = (x[-1], y[-1])
        ax.set_xticks(range(len(columns)), columns)
        label_ends(ax, ends, colours)

    return _draw(title, "", plot, f"{title}, by encoding, with 95 % intervals.")


def draw_curves(title: str, below: str, curves: Mapping[str, Sequence[tuple[float, float]]]) -> Drawing:
    """Draw lines of numbers against numbers, an encoding a line."""
    colours = encoding_colours(list(curves))

    def plot(ax: Any) -> None:
        ends = {}
        for encoding, points in curves.items():
            x, y = zip(*points, strict=True)
            name = line_name(encoding)
            ax.plot(x, y, color=colours[name], lw=1.4, marker="o" if len(x) == 1 else "", ms=4)
            ends[name] = points[-1]
        label_ends(ax, ends, colours)

    return _draw(title, below, plot, f"{title} against {below}, an encoding a line.")


def encoding_colours(encodings: Sequence[str]) -> dict[str, str]:
    """Return a colour for each encoding, by the name of its line."""
    spare, taken = cycle(SPARE_COLOURS), set[str]()
    colours = {}
    for encoding in encodings:
        own = COLOURS.get(parse_encoding(encoding)[0])
        colours[line_name(encoding)] = colour = own if own and own not in taken else next(spare)
        taken.add(colour)
    return colours


def line_name(encoding: str) -> str:
    """Return an encoding's name at the end of its line, where there is little room: its options are what counts.

    Example:
        >>> line_name("liere"), line_name("liere:init_scale=2.2214")
        ('LieRE (dense)', 'LieRE, init 2.2214')
    """
    return label(encoding).replace(" (dense),", ",")


def _draw(title: str, below: str, plot: Callable[[Any], None], alt: str) -> Drawing:
    with sheet(1, 1, cell=CELL) as (figure, axes):
        ax = axes[0, 0]
        plot(ax)
        dress(ax, title, below)
        return Drawing(figure_png(figure), inline_svg(figure, title.split(",")[0].replace(" ", "-"), alt), alt)
