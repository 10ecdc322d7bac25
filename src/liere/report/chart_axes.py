"""Chart axes: titles, grid lines, percentages, example counts and image sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from liere.report.drawing import GRID, INK

__all__ = ["count_axis", "percent_axis", "percent_limits", "size_places", "style_axes"]

NARROW = 0.11  # as a fraction of the axis: the tick labels of sizes closer than this would overlap


def style_axes(ax: Any, title: str, below: str, *, grid: str = "y") -> None:
    """Set the title and the x label of axes, with light grid lines and no ticks."""
    ax.set_title(title, loc="left", fontsize=10, color=INK, pad=10)
    ax.set_xlabel(below, fontsize=9.5, loc="left", multialignment="left")  # long labels would be cut off if centered
    ax.tick_params(length=0, labelsize=9.5)
    ax.grid(axis=grid, color=GRID, lw=0.8)
    ax.set_axisbelow(True)
    ax.spines["left"].set_visible(False)


def percent_axis(ax: Any, title: str) -> None:
    """Let the y axis show percentages, from a multiple of 10 below the data to 100."""
    ax.set_ylim(*percent_limits(ax.dataLim.y0))
    style_axes(ax, title, ax.get_xlabel())


def percent_limits(least: float) -> tuple[float, float]:
    """Return the limits of a percentage axis: from a multiple of 10 below the smallest value to 100."""
    return max(0, 10 * (min(least, 99) // 10)) - 1, 101.5


def count_axis(ax: Any) -> None:
    """Let the x axis count examples, with a few round, comma-separated numbers."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    ax.set_xlim(left=0)


def size_places(sizes: Sequence[int]) -> list[float]:
    """Return axis positions of increasing image sizes: logarithmic, or evenly spaced if some would be too close.

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
