"""Figures of benchmark records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from liere.bench.record import group_rows
from liere.report.drawing import INK, MUTED, canvas
from liere.report.encoding_style import COLORS, encoding_label

__all__ = ["draw_record"]


def draw_record(record: dict[str, Any], path: Path) -> None:
    """Draw a record to a PNG file.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    FIGURES[record["question"]](record, path)


def _rotations(record: dict[str, Any], path: Path) -> None:
    rows = record["rows"]
    places = range(len(rows))
    parts = {"forward": "forward", "forward_backward": "forward + backward"}
    with canvas(path, 1, 2, cell=(6.0, 1.2 + 0.42 * len(rows)), sharey=True) as (figure, axes):
        _title(figure, record, "Rotations of a layer: speedup over torch.matrix_exp")
        for ax, (part, label) in zip(axes[0], parts.items(), strict=True):
            for name, color, shift in (("exp_skew", COLORS["liere8"], -0.19), ("layer", COLORS["liere"], 0.19)):
                found = [row[part]["speedup"][name] for row in rows]
                _bars(ax, [place + shift for place in places], found, height=0.36, color=color, label=name)
            limits = [
                row[part]["seconds"]["matrix_exp"]["median"] / row[part]["limit_seconds"]["median"] for row in rows
            ]
            ax.plot(limits, places, "|", color=INK, ms=18, label="limit: bare matrix products of exp_skew")
            ax.set(title=label, xlabel="speedup", yticks=places)
            ax.set_yticklabels([row["case"] for row in rows])
            ax.axvline(1, color=MUTED, lw=0.8, ls="--")
        axes[0, 0].invert_yaxis()
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)


def _step(record: dict[str, Any], path: Path) -> None:
    groups = group_rows(record["rows"], "situation")
    parts = {"train": "train step", "inference": "inference"}
    height = 1.2 + 0.3 * max(map(len, groups.values()))
    with canvas(path, len(groups), 2, cell=(5.5, height)) as (figure, axes):
        _title(figure, record, "ViT-S: time relative to absolute positions")
        for line, (situation, rows) in zip(axes, groups.items(), strict=True):
            for ax, (part, label) in zip(line, parts.items(), strict=True):
                _models(ax, rows, [row[part]["ratio"] for row in rows])
                ax.set(title=f"{label}, {situation}", xlabel="time relative to absolute")


def _timm(record: dict[str, Any], path: Path) -> None:
    rows = record["rows"]
    parts = {"train": "train step", "inference": "inference"}
    with canvas(path, 1, 2, cell=(5.5, 1.4 + 0.4 * len(rows))) as (figure, axes):
        _title(figure, record, f"{rows[0]['name']}, {rows[0]['situation']}: time, relative to the original")
        for ax, (part, label) in zip(axes[0], parts.items(), strict=True):
            _bars(ax, range(len(rows)), [row[part]["ratio"] for row in rows], height=0.7, color=COLORS["liere8"])
            ax.axvline(1, color=INK, lw=0.8, ls="--")
            ax.set(title=label, xlabel="times as long as the original", yticks=range(len(rows)))
            ax.set_yticklabels([row["model"] for row in rows])
            ax.invert_yaxis()


def _memory(record: dict[str, Any], path: Path) -> None:
    groups = group_rows(record["rows"], "situation")
    height = 1.4 + 0.4 * max(map(len, groups.values()))
    with canvas(path, 1, len(groups), cell=(6.0, height)) as (figure, axes):
        _title(figure, record, "Peak memory of a train step in a fresh process")
        for ax, (situation, rows) in zip(axes[0], groups.items(), strict=True):
            _models(ax, rows, [row["ratio"] for row in rows])
            for place, row in enumerate(rows):
                label = f" {row['peak_bytes']['median'] / 2**30:.2f} GB"
                ax.text(row["ratio"]["median"], place, label, va="center", fontsize=9)
            ax.margins(x=0.18)
            ax.set(title=situation, xlabel="peak memory relative to absolute")


def _scaling(record: dict[str, Any], path: Path) -> None:
    with canvas(path, 2, 2, cell=(5.2, 3.6)) as (figure, axes):
        _title(figure, record, "Time of a train step with LieRE, relative to absolute positions")
        for ax, (varied, rows) in zip(axes.flat, group_rows(record["rows"], "varied").items(), strict=True):
            places = range(len(rows))
            medians, errors = _medians_and_errors([row["ratio"] for row in rows])
            ax.errorbar(places, medians, yerr=errors, fmt="o-", color=COLORS["liere8"], capsize=3)
            for place, row in zip(places, rows, strict=True):
                text = f"{1000 * row['excess_seconds']['median']:+.1f} ms"
                top = (place, row["ratio"]["quartiles"][1])
                ax.annotate(text, top, (0, 6), textcoords="offset points", ha="center", fontsize=9)
            ax.axhline(1, color=MUTED, lw=0.8, ls="--")
            ax.margins(x=0.12, y=0.25)
            ax.set(title=f"by {varied}", xlabel=varied, ylabel="time relative to absolute", xticks=places)
            ax.set_xticklabels([str(row["value"]) for row in rows])


def _title(figure: Any, record: dict[str, Any], text: str) -> None:
    machine, rounds = record["machine"], record["rounds"]
    quick = "QUICK RUN, do not quote. " if record["quick"] else ""
    repeats = "one round" if rounds == 1 else f"medians and quartiles of {rounds} rounds"
    figure.suptitle(f"{text}\n{quick}{machine['cpu']}, threads: {machine['threads']}; {repeats}", fontsize=11)


def _loading(record: dict[str, Any], path: Path) -> None:
    rows = record["rows"][1:]
    with canvas(path, 1, 1, cell=(6.5, 1.2 + 0.35 * len(rows))) as (figure, axes):
        _title(figure, record, "Time to load a batch, relative to a train step of a small model")
        ax = axes[0, 0]
        _bars(ax, range(len(rows)), [row["ratio"] for row in rows], height=0.7, color=COLORS["liere8"])
        ax.axvline(1, color=INK, lw=0.8, ls="--")
        ax.set(yticks=range(len(rows)), xlabel="time relative to a train step")
        ax.set_yticklabels([row["case"] for row in rows])
        ax.invert_yaxis()


def _points(record: dict[str, Any], path: Path) -> None:
    timed = [row for row in record["rows"] if "ratio" in row]
    weighed = [row for row in record["rows"] if "memory" in row]
    with canvas(path, 1, 2, cell=(6.0, 2.6)) as (figure, axes):
        _title(figure, record, "Point clouds: every sample has its own positions")
        _models(axes[0, 0], timed, [row["ratio"] for row in timed])
        axes[0, 0].set(title=f"train step, {timed[0]['situation']}", xlabel="times as long as without positions")
        if weighed:
            _models(axes[0, 1], weighed, [row["memory"] for row in weighed])
            axes[0, 1].set(title=f"memory, {weighed[0]['situation']}", xlabel="times queries, keys and their gradients")
        for ax in axes[0]:
            ax.title.set_fontsize(9)


def _training(record: dict[str, Any], path: Path) -> None:
    rows = record["rows"]
    parts = [part for part in rows[0]["shares"] if part not in ("forward", "backward", "optimizer step")]
    with canvas(path, 1, 2, cell=(6.0, 3.2)) as (figure, axes):
        _title(figure, record, "Training with the demo's recipe: liere train and bare loops")
        height = 0.8 / len(rows)
        for ax, names, find in (
            (axes[0, 0], list(rows[0]["loops"]), lambda row, name: row["loops"][name]["ratio"]),
            (axes[0, 1], parts, lambda row, name: row["shares"][name]),
        ):
            for place, row in enumerate(rows):
                known = [name for name in names if name in row["loops"] or name in parts]
                heights = [names.index(name) + (place + 0.5) * height - 0.4 for name in known]
                color, label = COLORS.get(row["encoding"], MUTED), encoding_label(row["encoding"])
                _bars(ax, heights, [find(row, name) for name in known], height=height, color=color, label=label)
            ax.set(yticks=range(len(names)))
            ax.set_yticklabels(names)
            ax.invert_yaxis()
        axes[0, 0].set(xlabel="time relative to the bare loop")
        axes[0, 0].axvline(1, color=INK, lw=0.8, ls="--")
        axes[0, 1].set(xlabel="share of the time of a run, besides the model")
        axes[0, 1].legend(frameon=False)


def _gpu(record: dict[str, Any], path: Path) -> None:
    groups = group_rows([row for row in record["rows"] if row["part"] == "step"], "situation")
    height = 1.4 + 0.3 * max(map(len, groups.values()))
    with canvas(path, len(groups), 1, cell=(8.0, height)) as (figure, axes):
        figure.suptitle("PREDICTED from data sheets, not measured: a train step on a GPU", fontsize=11)
        for ax, (situation, rows) in zip(axes[:, 0], groups.items(), strict=True):
            for shift, gpu in zip((-0.2, 0.2), rows[0]["ratio"], strict=True):
                places = [place + shift for place in range(len(rows))]
                color = COLORS["liere8"] if shift < 0 else COLORS["liere"]
                ax.barh(places, [row["ratio"][gpu] for row in rows], height=0.38, color=color, label=gpu)
            ax.axvline(1, color=INK, lw=0.8, ls="--")
            ax.set(title=situation, xlabel="predicted time relative to absolute", yticks=range(len(rows)))
            ax.set_yticklabels([row["model"] + ("" if row["how"] == "liere" else f", {row['how']}") for row in rows])
            ax.invert_yaxis()
            ax.legend(frameon=False)


def _models(ax: Any, rows: list[dict[str, Any]], ratios: list[dict[str, Any]]) -> None:
    """Draw a bar for each model."""
    names = [row["model"] for row in rows]
    _bars(ax, range(len(rows)), ratios, height=0.7, color=[_color(name) for name in names])
    ax.axvline(1, color=INK, lw=0.8, ls="--")
    ax.set(yticks=range(len(rows)))
    ax.set_yticklabels([_label(name) for name in names])
    ax.invert_yaxis()


def _bars(ax: Any, places: Any, found: list[dict[str, Any]], **options: Any) -> None:
    """Draw horizontal bars from medians, with quartiles as whiskers."""
    medians, errors = _medians_and_errors(found)
    ax.barh(places, medians, xerr=errors, error_kw={"ecolor": INK, "elinewidth": 0.9, "capsize": 2}, **options)


def _medians_and_errors(found: list[dict[str, Any]]) -> tuple[list[float], list[list[float]]]:
    low = [value["median"] - value["quartiles"][0] for value in found]
    high = [value["quartiles"][1] - value["median"] for value in found]
    return [value["median"] for value in found], [low, high]


def _color(model: str) -> str:
    model = model.removesuffix(" placed")
    return COLORS["liere"] if model.startswith("liere64") else COLORS.get(model.removeprefix("timm "), MUTED)


def _label(model: str) -> str:
    if model.startswith("timm "):
        return f"timm, {encoding_label(model.removeprefix('timm '))}"
    if model.endswith(" placed"):
        return f"{_label(model.removesuffix(' placed'))}, placed"
    return encoding_label(model).replace("liere64", "LieRE$_{64}$")


FIGURES: dict[str, Callable[[dict[str, Any], Path], None]] = {
    "rotations": _rotations,
    "step": _step,
    "timm": _timm,
    "memory": _memory,
    "scaling": _scaling,
    "loading": _loading,
    "points": _points,
    "training": _training,
    "gpu": _gpu,
}
