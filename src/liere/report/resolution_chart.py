"""Chart of accuracy against image size: the mean of each encoding, every seed, and an interval over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from liere.errors import InputError
from liere.report.chart_axes import percent_axis, percent_limits, size_places, style_axes
from liere.report.chart_points import MARKERS, Point, plot_points, plot_rows
from liere.report.comparison_queries import evaluation_at, has_several_seeds, spread_at
from liere.report.drawing import MUTED
from liere.report.encoding_style import colors_of
from liere.report.line_labels import label_ends

__all__ = ["plot_resolution", "resolution_alt", "resolution_panel", "seeds_note"]

DODGE = 0.45  # as a fraction of the gap between two sizes: the width over which encodings are spread out


def resolution_panel(ax: Any, comparison: dict[str, Any]) -> None:
    """Draw accuracy against image size, or one row per encoding if there is only one size."""
    tested = _tested(comparison)
    colors = colors_of(comparison)
    if len(tested) == 1:
        (size,) = tested
        rows = [row for row in comparison["encodings"] if evaluation_at(row, size)]
        plot_rows(ax, {row["encoding"]: point_at(comparison, row, size) for row in rows}, colors)
        ax.set_xlim(*percent_limits(ax.dataLim.x0))
        style_axes(ax, f"Accuracy at {size} px{_trained_at(comparison, size)}, %", seeds_note(comparison), grid="x")
        return
    names = [row["encoding"] for row in comparison["encodings"] if row["evaluations"]]
    markers = {name: MARKERS[place % len(MARKERS)] for place, name in enumerate(names)}
    ends, last = plot_resolution(ax, comparison, names, colors, markers)
    ax.set_xlabel(f"image size, px\n{seeds_note(comparison)}")
    percent_axis(ax, "Accuracy, %")
    label_ends(ax, ends, colors, markers=markers, last=last)


def plot_resolution(
    ax: Any, comparison: dict[str, Any], names: Sequence[str], colors: dict[str, str], markers: dict[str, str]
) -> tuple[dict[str, tuple[float, float]], float]:
    """Draw the encodings of a comparison against image size.

    Args:
        ax: Axes.
        comparison: The results.
        names: Encodings in order, including those that only other panels show, so that panels line up.
        colors: Colors by name.
        markers: Markers by name.

    Returns:
        The end point of each line, and the smallest x at which a line counts as reaching the last size.
    """
    train = comparison["train_size"]
    sizes = sorted({*_tested(comparison), train})
    places = dict(zip(sizes, size_places(sizes), strict=True))
    gaps = [after - before for before, after in pairwise(places.values())]
    step = DODGE * min(gaps, default=1.0) / max(len(names), 1)
    rows = {row["encoding"]: row for row in comparison["encodings"]}
    ends = {}
    ax.axvline(places[train], color=MUTED, lw=0.8, ls=(0, (2, 3)), zorder=1)
    for place, name in enumerate(names):
        tested = [size for size in sizes if name in rows and evaluation_at(rows[name], size)]
        if not tested:
            continue
        aside = step * (place - (len(names) - 1) / 2)
        x = [places[size] + aside for size in tested]
        points = [point_at(comparison, rows[name], size) for size in tested]
        plot_points(ax, x, points, color=colors[name], marker=markers[name], joined=True)
        ends[name] = (x[-1], points[-1].mean)
    labels = [f"{size}\n(training)" if size == train else str(size) for size in sizes]
    ax.set_xticks([*places.values()], labels)
    return ends, places[sizes[-1]] - step * len(names)


def point_at(comparison: dict[str, Any], row: dict[str, Any], size: int) -> Point:
    """Return an encoding's point at an image size; the interval is over test examples if all have one seed."""
    found, spread = evaluation_at(row, size), spread_at(row, size)
    if found is None or spread is None:
        raise InputError(f"{row['encoding']} was not evaluated at {size} px: run liere eval --sizes {size} on its runs")
    seeds = [100 * value for value in found["by_seed"]]
    if not has_several_seeds(comparison):
        accuracy = found["accuracy"]
        return Point(100 * accuracy["value"], seeds, 100 * accuracy["low"], 100 * accuracy["high"])
    if spread.low is None or spread.high is None:
        return Point(100 * spread.mean, seeds)
    return Point(100 * spread.mean, seeds, 100 * spread.low, 100 * spread.high)


def resolution_alt(comparison: dict[str, Any]) -> str:
    """Return the text alternative of the figure."""
    tested, train = _tested(comparison), comparison["train_size"]
    where = f"at {tested[0]} px" if len(tested) == 1 else "against image size"
    if has_several_seeds(comparison):
        how = "mean over seeds, one dot per seed, and the 95 % confidence interval over seeds"
    else:
        how = "one model per encoding, with 95 % confidence intervals over test examples"
    return f"Accuracy {where}: {how}. Models were trained at {train} px."


def seeds_note(comparison: dict[str, Any]) -> str:
    """Return a note that explains dots and bars."""
    counts = sorted({len(row["seeds"]) for row in comparison["encodings"] if row["evaluations"]})
    if counts[-1] == 1:
        return "(one seed; bars: 95 % interval over test examples)"
    seeds = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    return f"(dots: {seeds} seeds; bars: 95 % interval over seeds)"


def _tested(comparison: dict[str, Any]) -> list[int]:
    return sorted({found["size"] for row in comparison["encodings"] for found in row["evaluations"]})


def _trained_at(comparison: dict[str, Any], size: int) -> str:
    return "" if size == comparison["train_size"] else f" after training at {comparison['train_size']} px"
