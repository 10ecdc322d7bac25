"""Labels of lines in charts: at the line ends, or in a legend."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from liere.report.drawing import INK
from liere.report.encoding_style import short_label

__all__ = ["add_legend", "label_ends", "spread"]

LINE_OF_TEXT = 0.19  # inches between neighboring labels


def label_ends(
    ax: Any,
    ends: dict[str, tuple[float, float]],
    colors: dict[str, str],
    *,
    markers: dict[str, str] | None = None,
    last: float | None = None,
) -> None:
    """Label every line on the right, moving labels apart where lines end at about the same height.

    A thin leader connects the end of a line with its label. A line that ends before `last` gets its marker next to the
    label instead, because a leader would cross columns in which the line has no values.

    Args:
        ax: Axes, with their limits set.
        ends: End point of each line.
        colors: Colors by name.
        markers: Markers by name; dots by default.
        last: Smallest x at which a line counts as reaching the last column; by default all lines do.
    """
    low, high = ax.get_ylim()
    names = sorted(ends, key=lambda name: ends[name][1])
    figure_height = ax.figure.get_size_inches()[1]
    gap = max(0.07, LINE_OF_TEXT / (0.7 * figure_height)) * (high - low)
    heights = spread([ends[name][1] for name in names], gap=gap, low=low, high=high)
    for name, height in zip(names, heights, strict=True):
        reaches = last is None or ends[name][0] >= last
        leader = {"arrowstyle": "-", "color": colors[name], "lw": 1.0, "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 4}
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
            shape = {"marker": (markers or {}).get(name, "o"), "color": colors[name], "ms": 6, "ls": ""}
            ax.plot([1.04], [height], transform=ax.get_yaxis_transform(), clip_on=False, **shape)


def add_legend(
    owner: Any, names: Sequence[str], colors: dict[str, str], markers: dict[str, str], **options: Any
) -> None:
    """Add a legend with names, colors and markers to axes or to a figure."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=colors[name], marker=markers[name], ls="", ms=6.5, mec="white") for name in names]
    legend = owner.legend(lines, [short_label(name) for name in names], frameon=False, fontsize=9.5, **options)
    for text in legend.get_texts():
        text.set_parse_math(False)


def spread(values: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Return increasing values, moved as little as possible to be at least `gap` apart between `low` and `high`.

    If there is not enough room, values extend below `low`.

    Example:
        >>> spread([1.0, 6.0, 6.0], gap=2.0, low=0.0, high=10.0)
        [1.0, 5.0, 7.0]
        >>> spread([1.0, 9.5, 10.0], gap=2.0, low=0.0, high=10.0)
        [1.0, 8.0, 10.0]
    """
    # After subtracting `place * gap`, values only have to be non-decreasing: violators are pooled at their mean.
    pools: list[list[float]] = []
    for place, value in enumerate(values):
        pools.append([value - place * gap])
        while len(pools) > 1 and fmean(pools[-2]) > fmean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    levels = [fmean(pool) for pool in pools for _ in pool]
    top = high - gap * (len(values) - 1)
    return [min(max(level, low), top) + place * gap for place, level in enumerate(levels)]
