"""Several comparisons side by side: accuracy against image size, with a shared legend and y axis."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from liere.errors import InputError
from liere.files.writing import write_atomically
from liere.report.chart_axes import percent_axis, style_axes
from liere.report.chart_points import MARKERS
from liere.report.comparison_queries import has_several_seeds, spread_at
from liere.report.drawing import INK, MUTED, Drawing, figure_png, sheet
from liere.report.encoding_style import colors_of, plain_label
from liere.report.inline_svg import inline_svg
from liere.report.line_labels import add_legend
from liere.report.resolution_chart import plot_resolution, seeds_note

__all__ = ["COUNTING_ARROWS", "Level", "draw_side_by_side", "write_side_by_side"]

PANEL = (4.5, 3.7)  # inches


class Level(NamedTuple):
    """A reference accuracy, drawn as a dashed line across all panels.

    Attributes:
        accuracy: From 0 to 1.
        label: Text next to the line.
    """

    accuracy: float
    label: str


COUNTING_ARROWS = Level(0.44, "counting arrows: 44 %")


def draw_side_by_side(comparisons: Mapping[str, dict[str, Any]], *, level: Level | None = None) -> Drawing:
    """Draw accuracy against image size for several comparisons, one panel each.

    A small dot shows each seed, a marker the mean over seeds, and a bar the 95 % confidence interval over seeds, or
    over test examples if a comparison has one seed per encoding.

    Args:
        comparisons: Results, as `summarize` returns them and `report.json` stores them, by panel title.
        level: A reference line, such as `COUNTING_ARROWS`.

    Raises:
        ValueError: If there are no comparisons, or one of them has not been evaluated.
        ImportError: If matplotlib is not installed.
    """
    _check(comparisons)
    alt = _alt(comparisons, level)
    with sheet(1, len(comparisons), cell=PANEL, sharey=True) as (figure, axes):
        _fill(figure, axes[0], comparisons, level)
        return Drawing(figure_png(figure), inline_svg(figure, "side-by-side", alt), alt)


def write_side_by_side(
    path: Path, comparisons: Mapping[str, dict[str, Any]], *, level: Level | None = COUNTING_ARROWS
) -> str:
    """Write the figure of `draw_side_by_side` to a file, on white, and return its text alternative.

    Args:
        path: A `.png` or `.svg` file.
        comparisons: Results by panel title.
        level: A reference line; by default the accuracy of counting arrows in the spatial task.

    Raises:
        ValueError: If there is nothing to draw, or the suffix is not supported.
    """
    _check(comparisons)
    kind = path.suffix.lower().lstrip(".")
    if kind not in ("png", "svg"):
        raise InputError(f"path must end in .png or .svg, got {str(path)!r}")
    from matplotlib import rc_context

    with (
        rc_context({"svg.hashsalt": "side-by-side"}),
        sheet(1, len(comparisons), cell=PANEL, sharey=True) as (figure, axes),
    ):
        _fill(figure, axes[0], comparisons, level)
        buffer = io.BytesIO()
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(buffer, format=kind, dpi=150, facecolor="white", metadata=metadata)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, buffer.getvalue())
    return _alt(comparisons, level)


def _check(comparisons: Mapping[str, dict[str, Any]]) -> None:
    if not comparisons:
        raise InputError("comparisons is empty: pass at least one")
    for title, comparison in comparisons.items():
        if not any(row["evaluations"] for row in comparison["encodings"]):
            raise InputError(f"comparison {title!r} has not been evaluated: run liere eval on its runs first")


def _fill(figure: Any, axes: Any, comparisons: Mapping[str, dict[str, Any]], level: Level | None) -> None:
    parts = [row for comparison in comparisons.values() for row in comparison["encodings"] if row["evaluations"]]
    names = list(dict.fromkeys(row["encoding"] for row in parts))
    colors = colors_of({"encodings": parts, "runs": []})
    markers = {name: MARKERS[place % len(MARKERS)] for place, name in enumerate(names)}
    figure.get_layout_engine().set(wspace=0.05)
    for ax, comparison in zip(axes, comparisons.values(), strict=True):
        plot_resolution(ax, comparison, names, colors, markers)
        if level:
            ax.axhline(100 * level.accuracy, color=MUTED, lw=1.1, ls=(0, (5, 3)), zorder=1.5)
    low = min(ax.dataLim.y0 for ax in axes)
    for ax, (title, comparison) in zip(axes, comparisons.items(), strict=True):
        ax.dataLim.y0 = low
        percent_axis(ax, title)
        style_axes(ax, title, f"image size, px\n{seeds_note(comparison)}")
        ax.set_title(title, loc="left", fontsize=11, color=INK, pad=10)
    axes[0].set_ylabel("accuracy, %", fontsize=9.5)
    if level:
        where = {"xy": (0.995, 100 * level.accuracy), "xycoords": axes[-1].get_yaxis_transform()}
        offset = {"xytext": (0, 4), "textcoords": "offset points", "ha": "right", "va": "bottom"}
        halo = {"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.8}
        axes[-1].annotate(level.label, **where, **offset, fontsize=8.5, color=MUTED, bbox=halo)
    add_legend(figure, names, colors, markers, loc="outside lower center", ncols=min(len(names), 6))


def _alt(comparisons: Mapping[str, dict[str, Any]], level: Level | None) -> str:
    """Return the text alternative of the figure: means at the largest size, by panel."""
    parts = []
    for title, comparison in comparisons.items():
        size = max(found["size"] for row in comparison["encodings"] for found in row["evaluations"])
        means = [
            f"{plain_label(row['encoding'])} {100 * spread.mean:.0f} %"
            for row in comparison["encodings"]
            if (spread := spread_at(row, size))
        ]
        kind = "means over seeds" if has_several_seeds(comparison) else "one seed"
        parts.append(f"{title}: at {size} px, {kind}, {', '.join(means)}.")
    line = f" A dashed line marks {level.label}." if level else ""
    train = next(iter(comparisons.values()))["train_size"]
    return f"Accuracy against image size after training at {train} px, one dot per seed. {' '.join(parts)}{line}"
