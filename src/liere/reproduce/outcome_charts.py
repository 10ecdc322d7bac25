"""Figures of reproductions: points with seeds and intervals, one color per encoding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

from liere.report.chart_axes import count_axis, style_axes
from liere.report.chart_points import MARKERS, plot_points, plot_rows
from liere.report.drawing import CELL, Drawing, figure_png, sheet
from liere.report.encoding_style import COLORS, SPARE_COLORS
from liere.report.inline_svg import inline_svg
from liere.report.line_labels import add_legend, label_ends
from liere.reproduce.measured import Measured
from liere.reproduce.row_labels import label
from liere.runs.encoding_text import parse_encoding

__all__ = ["draw_columns", "draw_curves"]


def draw_columns(
    title: str,
    encodings: Sequence[str],
    columns: Sequence[str],
    ours: Callable[[str, str], Measured | None],
    *,
    ordered: bool = True,
) -> Drawing:
    """Draw one value per encoding and column: its mean, every seed, and an interval over seeds.

    Args:
        title: Title of the figure.
        encodings: Encodings to draw.
        columns: Columns along the x axis.
        ours: Returns the value for an encoding and a column, or None; with one seed, the interval is over examples.
        ordered: Whether columns are ordered, as sizes are, so that lines connect them; data sets are not.
    """
    names = [line_name(encoding) for encoding in encodings]
    measured = {
        name: {place: found for place, column in enumerate(columns) if (found := ours(encoding, column)) is not None}
        for name, encoding in zip(names, encodings, strict=True)
    }
    measured = {name: found for name, found in measured.items() if found}
    counts = {len(found.by_seed) for row in measured.values() for found in row.values()}
    colors = encoding_colors(encodings)
    markers = {name: MARKERS[place % len(MARKERS)] for place, name in enumerate(measured)}
    below = _note(counts)

    def rows(ax: Any) -> None:
        plot_rows(ax, {name: next(iter(found.values())).point() for name, found in measured.items()}, colors)

    def plot(ax: Any) -> None:
        step = 0.5 / max(len(measured), 1)
        ends = {}
        for place, (name, found) in enumerate(measured.items()):
            x = [at + step * (place - (len(measured) - 1) / 2) for at in found]
            points = [one.point() for one in found.values()]
            plot_points(ax, x, points, color=colors[name], marker=markers[name], joined=ordered)
            ends[name] = (x[-1], points[-1].mean)
        ax.set_xticks(range(len(columns)), [column.replace(", ", ",\n") for column in columns])
        if ordered and len(measured) > 1:
            label_ends(ax, ends, colors, markers=markers, last=len(columns) - 1.5)
        elif not ordered:
            add_legend(ax, [*measured], colors, markers, loc="center left", bbox_to_anchor=(1.01, 0.5))

    alt = f"{title.removesuffix(', %')}, in percent, by encoding. {below.strip('()').capitalize()}."
    if len(columns) == 1:
        return _draw(f"{title.removesuffix(', %')}, {columns[0]}, %", below, rows, alt, grid="x")
    return _draw(title, below, plot, alt)


def _note(counts: set[int]) -> str:
    """Return a note that explains dots and bars, given the numbers of seeds."""
    if max(counts, default=1) == 1:
        return "(one seed; bars: 95 % interval over test examples)"
    if min(counts) > 1:
        return "(dots: seeds; bars: 95 % interval over seeds)"
    return "(dots: seeds; bars: 95 % interval over seeds,\nor over test examples if there is one seed)"


def draw_curves(title: str, below: str, curves: Mapping[str, Sequence[tuple[float, float]]]) -> Drawing:
    """Draw curves of (x, y) points, one line per encoding."""
    colors = encoding_colors(list(curves))

    def plot(ax: Any) -> None:
        ends = {}
        for encoding, points in curves.items():
            x, y = zip(*points, strict=True)
            name = line_name(encoding)
            ax.plot(x, y, color=colors[name], lw=1.4, marker="o" if len(x) == 1 else "", ms=4)
            ends[name] = points[-1]
        count_axis(ax)
        label_ends(ax, ends, colors)

    return _draw(title, below, plot, f"{title} against {below}, one line per encoding.")


def encoding_colors(encodings: Sequence[str]) -> dict[str, str]:
    """Return a color for each encoding, by its line label."""
    spare, taken = cycle(SPARE_COLORS), set[str]()
    colors = {}
    for encoding in encodings:
        own = COLORS.get(parse_encoding(encoding)[0])
        colors[line_name(encoding)] = color = own if own and own not in taken else next(spare)
        taken.add(color)
    return colors


def line_name(encoding: str) -> str:
    """Return an encoding's line label, shortened to leave room for its options.

    Example:
        >>> line_name("liere"), line_name("liere:init_scale=2.2214")
        ('LieRE (dense)', 'LieRE, init 2.2214')
    """
    return label(encoding).replace(" (dense),", ",")


def _draw(title: str, below: str, plot: Callable[[Any], None], alt: str, *, grid: str = "y") -> Drawing:
    with sheet(1, 1, cell=CELL) as (figure, axes):
        ax = axes[0, 0]
        plot(ax)
        style_axes(ax, title, below, grid=grid)
        return Drawing(figure_png(figure), inline_svg(figure, title.split(",")[0].replace(" ", "-"), alt), alt)
