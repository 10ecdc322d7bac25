"""Data points in charts: a marker for the mean, a dot for every seed, a bar for the interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from liere.report.drawing import INK
from liere.report.encoding_style import short_label

__all__ = ["MARKERS", "Point", "plot_points", "plot_rows"]

MARKERS = "osD^v<>"


class Point(NamedTuple):
    """A value to draw, in percent: the mean, the value of each seed, and an interval.

    Attributes:
        mean: Mean over seeds.
        seeds: One value per seed.
        low: Lower end of the interval over seeds, or over test examples if there is one seed; None for no interval.
        high: Upper end of the interval.
    """

    mean: float
    seeds: Sequence[float]
    low: float | None = None
    high: float | None = None


def plot_points(ax: Any, x: Sequence[float], points: Sequence[Point], *, color: str, marker: str, joined: bool) -> None:
    """Draw means with markers, every seed as a small dot, and intervals as bars.

    Args:
        ax: Axes.
        x: Position of each point.
        points: The points.
        color: Color of markers, dots and bars.
        marker: Marker of the means.
        joined: Whether to connect the means with a line.
    """
    for at, point in zip(x, points, strict=True):
        if point.low is not None:
            ax.plot([at, at], [point.low, point.high], color=color, lw=1.1, alpha=0.6, solid_capstyle="butt")
        if len(point.seeds) > 1:
            ax.plot([at] * len(point.seeds), point.seeds, "o", color=color, ms=3.4, mew=0, zorder=2.5)
    means = [point.mean for point in points]
    if joined:
        ax.plot(x, means, color=color, lw=1.4, zorder=2)
    ax.plot(x, means, marker, color=color, ms=7, mec="white", mew=0.8, zorder=3)


def plot_rows(ax: Any, points: dict[str, Point], colors: dict[str, str]) -> None:
    """Draw one row per name, with values along the x axis; used when there is only one column of results."""
    for row, (name, point) in enumerate(points.items()):
        if point.low is not None:
            ax.plot([point.low, point.high], [row, row], color=colors[name], lw=1.3, alpha=0.6)
        if len(point.seeds) > 1:
            rows = [row] * len(point.seeds)
            ax.plot(point.seeds, rows, "o", color=colors[name], ms=3.8, mew=0, zorder=2.5)
        marker = MARKERS[row % len(MARKERS)]
        ax.plot([point.mean], [row], marker, color=colors[name], ms=7, mec="white", mew=0.8, zorder=3)
    ax.set_yticks(range(len(points)), [short_label(name) for name in points])
    for text in ax.get_yticklabels():
        text.set_parse_math(False)
        text.set_color(INK)
    ax.set_ylim(len(points) - 0.4, -0.6)
