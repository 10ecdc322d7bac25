"""Figures of a report: how encodings learn, and how they fare at other resolutions."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from liere.evaluation.figures import GRID, INK, MUTED, sheet
from liere.evaluation.report.inline_svg import inline_svg
from liere.evaluation.report.names import colours_of, plain_label
from liere.evaluation.report.over_seeds import evaluation_at
from liere.evaluation.report.pictures import AttentionRow

__all__ = [
    "CELL",
    "Drawing",
    "draw_attention",
    "draw_curves",
    "draw_overview",
    "draw_resolution",
    "dress",
    "figure_png",
    "label_ends",
]

CELL = (4.6, 3.4)  # inches; at 72 units an inch, about the width of a phone, so that text is legible on one
MARKERS = "osD^vPX"
LONGEST_LABEL = 20  # letters; a longer one would leave no room for its lines


class Drawing(NamedTuple):
    """A figure.

    Attributes:
        png: As a file, on white.
        svg: As an element of a page.
        alt: What it shows, for those who cannot see it.
    """

    png: bytes
    svg: str
    alt: str


def draw_curves(comparison: dict[str, Any]) -> Drawing | None:
    """Draw validation accuracy against examples seen, a line a seed; None where no run has a curve."""
    if not _has_curves(comparison):
        return None
    alt = "Validation accuracy against training examples seen, one line a seed."
    return _draw(_curves, comparison, "curves", alt)


def draw_resolution(comparison: dict[str, Any]) -> Drawing | None:
    """Draw accuracy against image size, with intervals; None where nothing was evaluated."""
    if not _has_evaluations(comparison):
        return None
    alt = f"Accuracy against image size, with 95 % intervals; models were trained at {comparison['train_size']} px."
    return _draw(_resolution, comparison, "resolution", alt)


def draw_overview(comparison: dict[str, Any]) -> bytes | None:
    """Draw both figures side by side, as a PNG file; None where there is nothing to draw."""
    known = ((_has_curves, _curves), (_has_evaluations, _resolution))
    panels = [panel for has_data, panel in known if has_data(comparison)]
    if not panels:
        return None
    with sheet(1, len(panels), cell=CELL) as (figure, axes):
        figure.get_layout_engine().set(wspace=0.06)
        for ax, panel in zip(axes[0], panels, strict=True):
            panel(ax, comparison)
        return figure_png(figure)


def draw_attention(rows: Sequence[AttentionRow]) -> bytes:
    """Draw attention maps, a row an encoding and a column a layer, as a PNG file."""
    from matplotlib.image import imread

    depth = max(len(row.layers) for row in rows)
    with sheet(len(rows), depth, cell=(1.5, 1.5)) as (figure, axes):
        for line, row in zip(axes, rows, strict=True):
            for ax in line:
                ax.set_axis_off()
            for ax, layer in zip(line, row.layers, strict=False):  # another model may have more layers
                ax.imshow(imread(io.BytesIO(layer), format="png"), interpolation="nearest")
            where = {"x": -0.08, "y": 0.5, "ha": "right", "va": "center", "transform": line[0].transAxes}
            line[0].text(s=_short(row.encoding), parse_math=False, **where)
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
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    runs = [run for run in comparison["runs"] if run["curve"]]
    names = list(dict.fromkeys(run["encoding"] for run in runs))
    colours = colours_of(comparison)
    ends = {}
    for name in names:
        curves = [run["curve"] for run in runs if run["encoding"] == name]
        for curve in curves:
            x = [point["examples"] for point in curve]
            y = [100 * point["accuracy"] for point in curve]
            # A single point makes no line.
            ax.plot(x, y, color=colours[name], lw=1.2, alpha=0.85, marker="o" if len(x) == 1 else "", ms=4)
        last = max(curve[-1]["examples"] for curve in curves)
        ends[name] = (last, 100 * sum(curve[-1]["accuracy"] for curve in curves) / len(curves))
    _dress(ax, "Validation accuracy, %", "training examples seen")
    ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    ax.set_xlim(left=0)
    label_ends(ax, ends, colours)


def _resolution(ax: Any, comparison: dict[str, Any]) -> None:
    rows = [row for row in comparison["encodings"] if row["evaluations"]]
    colours = colours_of(comparison)
    train, sizes = comparison["train_size"], sorted({*comparison["sizes"], comparison["train_size"]})
    step = 0.012 * (sizes[-1] - sizes[0] or 1)  # aside, so that equal values do not hide each other
    ends = {}
    ax.axvline(train, color=MUTED, lw=0.8, ls=(0, (2, 3)), zorder=1)
    for place, row in enumerate(rows):
        name, found = row["encoding"], [evaluation_at(row, size) for size in sizes]
        values = [one["accuracy"] for one in found if one]
        aside = step * (place - (len(rows) - 1) / 2)
        x = [one["size"] + aside for one in found if one]
        y = [100 * value["value"] for value in values]
        errors = [
            [max(0.0, 100 * (value["value"] - value["low"])) for value in values],
            [max(0.0, 100 * (value["high"] - value["value"])) for value in values],
        ]
        ax.errorbar(x, y, yerr=errors, color=colours[name], lw=1.4, elinewidth=1.1, capsize=2)
        marker = MARKERS[place % len(MARKERS)]
        ax.plot(x, y, marker, color=colours[name], ms=5.5, mec="white", mew=0.8, zorder=3)
        ends[name] = (x[-1], y[-1])
    _dress(ax, "Accuracy, %, with 95 % intervals", "image size, px")
    ax.set_xticks(sizes, [f"{size}\n(training)" if size == train else str(size) for size in sizes])
    label_ends(ax, ends, colours)


def _dress(ax: Any, title: str, below: str) -> None:
    """Set percent on the y axis, from a multiple of 10 below the data to 100."""
    low = min(ax.dataLim.y0, 99)
    ax.set_ylim(max(0, 10 * (low // 10)) - 1, 101.5)
    dress(ax, title, below)


def dress(ax: Any, title: str, below: str) -> None:
    """Give axes their title, the name of the x axis, and no more lines than a reader needs."""
    ax.set_title(title, loc="left", fontsize=10, color=INK, pad=10)
    ax.set_xlabel(below, fontsize=9.5)
    ax.tick_params(length=0, labelsize=9.5)
    ax.grid(axis="y", color=GRID, lw=0.8)
    ax.set_axisbelow(True)
    ax.spines["left"].set_visible(False)


def label_ends(ax: Any, ends: dict[str, tuple[float, float]], colours: dict[str, str]) -> None:
    """Name every line at its end, with names moved apart where lines end at about the same height."""
    low, high = ax.get_ylim()
    names = sorted(ends, key=lambda name: ends[name][1])
    heights = spread([ends[name][1] for name in names], gap=0.07 * (high - low), low=low, high=high)
    for name, height in zip(names, heights, strict=True):
        ax.annotate(
            _short(name),
            ends[name],
            (1.07, height),
            textcoords=ax.get_yaxis_transform(),
            arrowprops={
                "arrowstyle": "-",
                "color": colours[name],
                "lw": 1.0,
                "relpos": (0, 0.5),
                "shrinkA": 1,
                "shrinkB": 4,
            },
            annotation_clip=False,
            va="center",
            fontsize=9.5,
            color=INK,
            parse_math=False,
        )


def spread(values: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Return rising values moved as little as will do to lie at least `gap` apart, between `low` and `high`.

    Example:
        >>> spread([1.0, 6.0, 6.0], gap=2.0, low=0.0, high=10.0)
        [1.0, 5.0, 7.0]
        >>> spread([1.0, 9.5, 10.0], gap=2.0, low=0.0, high=10.0)
        [1.0, 8.0, 10.0]
    """
    # Less `place * gap`, values must only not fall: those that do are pooled at their mean.
    pools: list[list[float]] = []
    for place, value in enumerate(values):
        pools.append([value - place * gap])
        while len(pools) > 1 and fmean(pools[-2]) > fmean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    levels = [fmean(pool) for pool in pools for _ in pool]
    top = high - gap * (len(values) - 1)
    return [min(max(level, low), top) + place * gap for place, level in enumerate(levels)]


def _short(name: str) -> str:
    label = plain_label(name)
    return label if len(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + "…"


def figure_png(figure: Any) -> bytes:
    """Return a figure as a PNG file, on white."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, facecolor="white")
    return buffer.getvalue()
