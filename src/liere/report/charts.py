"""Figures of a report: learning curves, and accuracy at other resolutions."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

from liere.report.chart_axes import count_axis, percent_axis
from liere.report.drawing import CELL, MUTED, Drawing, figure_png, sheet
from liere.report.encoding_style import colors_of, short_label
from liere.report.inline_svg import inline_svg
from liere.report.line_labels import label_ends
from liere.report.picture_data import AttentionRow
from liere.report.resolution_chart import resolution_alt, resolution_panel

__all__ = ["draw_attention", "draw_curves", "draw_overview", "draw_resolution"]


def draw_curves(comparison: dict[str, Any]) -> Drawing | None:
    """Draw validation accuracy against examples seen, one line per seed; return None if no run has a curve."""
    if not _has_curves(comparison):
        return None
    alt = "Validation accuracy against training examples seen, one line per seed."
    return _draw(_curves, comparison, "curves", alt)


def draw_resolution(comparison: dict[str, Any]) -> Drawing | None:
    """Draw accuracy against image size, with every seed; return None if nothing was evaluated."""
    if not _has_evaluations(comparison):
        return None
    return _draw(resolution_panel, comparison, "resolution", resolution_alt(comparison))


def draw_overview(comparison: dict[str, Any]) -> bytes | None:
    """Draw both figures side by side and return a PNG file, or None if there is nothing to draw."""
    known = ((_has_curves, _curves), (_has_evaluations, resolution_panel))
    panels = [panel for has_data, panel in known if has_data(comparison)]
    if not panels:
        return None
    with sheet(1, len(panels), cell=CELL) as (figure, axes):
        figure.get_layout_engine().set(wspace=0.06)
        for ax, panel in zip(axes[0], panels, strict=True):
            panel(ax, comparison)
        return figure_png(figure)


def draw_attention(rows: Sequence[AttentionRow]) -> bytes:
    """Draw attention maps, one row per encoding and one column per layer, and return a PNG file."""
    from matplotlib.image import imread

    depth = max(len(row.layers) for row in rows)
    with sheet(len(rows), depth, cell=(1.5, 1.5)) as (figure, axes):
        for line, row in zip(axes, rows, strict=True):
            for ax in line:
                ax.set_axis_off()
            for ax, layer in zip(line, row.layers, strict=False):  # models may differ in depth
                ax.imshow(imread(io.BytesIO(layer), format="png"), interpolation="nearest")
            where = {"x": -0.08, "y": 0.5, "ha": "right", "va": "center", "transform": line[0].transAxes}
            line[0].text(s=short_label(row.encoding), parse_math=False, **where)
        for number, ax in enumerate(axes[0], start=1):
            ax.set_title(f"layer {number}", fontsize=9, color=MUTED)
        return figure_png(figure)


def _has_curves(comparison: dict[str, Any]) -> bool:
    return any(run["curve"] for run in comparison["runs"])


def _has_evaluations(comparison: dict[str, Any]) -> bool:
    return any(row["evaluations"] for row in comparison["encodings"])


def _draw(panel: Callable[[Any, dict[str, Any]], None], comparison: dict[str, Any], name: str, alt: str) -> Drawing:
    with sheet(1, 1, cell=CELL) as (figure, axes):
        panel(axes[0, 0], comparison)
        return Drawing(figure_png(figure), inline_svg(figure, name, alt), alt)


def _curves(ax: Any, comparison: dict[str, Any]) -> None:
    runs = [run for run in comparison["runs"] if run["curve"]]
    names = list(dict.fromkeys(run["encoding"] for run in runs))
    colors = colors_of(comparison)
    ends = {}
    for name in names:
        curves = [run["curve"] for run in runs if run["encoding"] == name]
        for curve in curves:
            x = [point["examples"] for point in curve]
            y = [100 * point["accuracy"] for point in curve]
            # A single point would be invisible without a marker.
            ax.plot(x, y, color=colors[name], lw=1.2, alpha=0.85, marker="o" if len(x) == 1 else "", ms=4)
        last = max(curve[-1]["examples"] for curve in curves)
        ends[name] = (last, 100 * sum(curve[-1]["accuracy"] for curve in curves) / len(curves))
    ax.set_xlabel("training examples seen")
    percent_axis(ax, "Validation accuracy, %: one line per seed")
    count_axis(ax)
    label_ends(ax, ends, colors)
