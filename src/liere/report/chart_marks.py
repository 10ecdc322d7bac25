"""What the figures of reports and reproductions share: points with their seeds, labels of lines, plain axes."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any, NamedTuple

from liere.report.drawing import GRID, INK
from liere.report.encoding_labels import plain_label

__all__ = [
    "CELL",
    "MARKERS",
    "Drawing",
    "Point",
    "add_legend",
    "count_axis",
    "dress",
    "figure_png",
    "label_ends",
    "plot_points",
    "plot_rows",
    "short_label",
    "size_places",
    "spread",
]

CELL = (4.6, 3.4)  # inches; at 72 units an inch, about the width of a phone, so that text is legible on one
MARKERS = "osD^v<>"
LONGEST_LABEL = 20  # letters; a longer one would leave no room for its lines
NARROW = 0.11  # of the axis: sizes nearer to each other than that would have overlapping ticks
LINE_OF_TEXT = 0.19  # inches: how far apart the labels of lines are


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


class Point(NamedTuple):
    """A number to draw, in percent: its mean, the seeds it is the mean of, and an interval.

    Attributes:
        mean: Mean over seeds.
        seeds: One number per seed.
        low: Lower end of an interval over seeds, or over test examples where there is one seed; None for none.
        high: Its upper end.
    """

    mean: float
    seeds: Sequence[float]
    low: float | None = None
    high: float | None = None


def plot_points(
    ax: Any, x: Sequence[float], points: Sequence[Point], *, colour: str, marker: str, joined: bool
) -> None:
    """Draw means with markers, every seed as a small dot, and intervals as bars.

    Args:
        ax: Axes.
        x: Where each point is.
        points: The points.
        colour: Colour of all of it.
        marker: Shape of the means.
        joined: Whether a line joins the means.
    """
    for at, point in zip(x, points, strict=True):
        if point.low is not None:
            ax.plot([at, at], [point.low, point.high], color=colour, lw=1.1, alpha=0.6, solid_capstyle="butt")
        if len(point.seeds) > 1:
            ax.plot([at] * len(point.seeds), point.seeds, "o", color=colour, ms=3.4, mew=0, zorder=2.5)
    means = [point.mean for point in points]
    if joined:
        ax.plot(x, means, color=colour, lw=1.4, zorder=2)
    ax.plot(x, means, marker, color=colour, ms=7, mec="white", mew=0.8, zorder=3)


def plot_rows(ax: Any, points: dict[str, Point], colours: dict[str, str]) -> None:
    """Draw one row per name, its numbers from left to right: for what was measured in one column alone."""
    for row, (name, point) in enumerate(points.items()):
        if point.low is not None:
            ax.plot([point.low, point.high], [row, row], color=colours[name], lw=1.3, alpha=0.6)
        if len(point.seeds) > 1:
            rows = [row] * len(point.seeds)
            ax.plot(point.seeds, rows, "o", color=colours[name], ms=3.8, mew=0, zorder=2.5)
        marker = MARKERS[row % len(MARKERS)]
        ax.plot([point.mean], [row], marker, color=colours[name], ms=7, mec="white", mew=0.8, zorder=3)
    ax.set_yticks(range(len(points)), [short_label(name) for name in points])
    for text in ax.get_yticklabels():
        text.set_parse_math(False)
        text.set_color(INK)
    ax.set_ylim(len(points) - 0.4, -0.6)


def dress(ax: Any, title: str, below: str, *, grid: str = "y") -> None:
    """Give axes their title, the name of the x axis, and no more lines than a reader needs."""
    ax.set_title(title, loc="left", fontsize=10, color=INK, pad=10)
    ax.set_xlabel(below, fontsize=9.5, loc="left", multialignment="left")  # centered, long ones would be cut
    ax.tick_params(length=0, labelsize=9.5)
    ax.grid(axis=grid, color=GRID, lw=0.8)
    ax.set_axisbelow(True)
    ax.spines["left"].set_visible(False)


def count_axis(ax: Any) -> None:
    """Let the x axis count examples: a few round numbers with commas, which leave room between them."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    ax.set_xlim(left=0)


def size_places(sizes: Sequence[int]) -> list[float]:
    """Return where rising image sizes stand on an axis: by their logarithms, or evenly where some would be too near.

    Example:
        >>> size_places([8, 16, 64])
        [3.0, 4.0, 6.0]
        >>> size_places([100, 101, 400])
        [0.0, 1.0, 2.0]
    """
    places = [math.log2(size) for size in sizes]
    gaps = [after - before for before, after in pairwise(places)]
    if gaps and min(gaps) < NARROW * sum(gaps):
        return [float(place) for place in range(len(sizes))]
    return places


def label_ends(
    ax: Any,
    ends: dict[str, tuple[float, float]],
    colours: dict[str, str],
    *,
    markers: dict[str, str] | None = None,
    last: float | None = None,
) -> None:
    """Name every line at the right, with names moved apart where lines end at about the same height.

    A thin line leads from the end of a line to its name. Those that end before `last` have their marker beside the
    name instead, since a line from there would cross columns in which there is nothing to be seen.

    Args:
        ax: Axes, with their limits set.
        ends: Where each line ends.
        colours: Colours by name.
        markers: Shapes by name; without them all are dots.
        last: Where lines are that reach the last column; without it, all do.
    """
    low, high = ax.get_ylim()
    names = sorted(ends, key=lambda name: ends[name][1])
    figure_height = ax.figure.get_size_inches()[1]
    gap = max(0.07, LINE_OF_TEXT / (0.7 * figure_height)) * (high - low)
    heights = spread([ends[name][1] for name in names], gap=gap, low=low, high=high)
    for name, height in zip(names, heights, strict=True):
        reaches = last is None or ends[name][0] >= last
        leader = {"arrowstyle": "-", "color": colours[name], "lw": 1.0, "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 4}
        ax.annotate(
            short_label(name),
            ends[name] if reaches else (1.07, height),
            (1.07, height),
            xycoords="data" if reaches else ax.get_yaxis_transform(),
            textcoords=ax.get_yaxis_transform(),
            arrowprops=leader if reaches else None,
            annotation_clip=False,
            va="center",
            fontsize=9.5,
            color=INK,
            parse_math=False,
        )
        if not reaches:
            shape = {"marker": (markers or {}).get(name, "o"), "color": colours[name], "ms": 6, "ls": ""}
            ax.plot([1.04], [height], transform=ax.get_yaxis_transform(), clip_on=False, **shape)


def add_legend(
    owner: Any, names: Sequence[str], colours: dict[str, str], markers: dict[str, str], **options: Any
) -> None:
    """Add a legend of names with their colours and shapes to axes or a figure."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=colours[name], marker=markers[name], ls="", ms=6.5, mec="white") for name in names]
    legend = owner.legend(lines, [short_label(name) for name in names], frameon=False, fontsize=9.5, **options)
    for text in legend.get_texts():
        text.set_parse_math(False)


def spread(values: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Return rising values moved as little as will do to lie at least `gap` apart, between `low` and `high`.

    Where there is no room for all of them, they go below `low`.

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


def short_label(name: str) -> str:
    """Return an encoding's name for a reader, cut where it is long."""
    label = plain_label(name)
    return label if len(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + "…"


def figure_png(figure: Any) -> bytes:
    """Return a figure as a PNG file, on white."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, facecolor="white")
    return buffer.getvalue()
