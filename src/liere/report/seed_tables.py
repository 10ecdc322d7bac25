"""Tables with one entry per seed: accuracies, and training runs."""

from __future__ import annotations

from typing import Any

from liere.report.comparison_queries import has_several_seeds, seed_values, spread_at
from liere.report.encoding_style import plain_label
from liere.report.table_cells import NOTHING, Cell, Column, Table, percent

__all__ = ["run_table", "seed_table"]


def seed_table(comparison: dict[str, Any]) -> Table:
    """Return one row per encoding and image size: the accuracy of every seed, the mean, intervals, and the loss."""
    seeds = sorted({seed for row in comparison["encodings"] for seed in row["seeds"]})
    several = has_several_seeds(comparison)
    columns = [
        Column("encoding", numeric=False),
        Column("size"),
        *(Column(f"seed {seed}", "accuracy") for seed in seeds),
        *([Column("mean", "accuracy"), Column("over seeds", "95 % interval")] if several else []),
        Column("over test examples", "95 % interval"),
        Column("loss"),
        Column("test examples"),
    ]
    rows, keys = [], []
    for row in comparison["encodings"]:
        for found in row["evaluations"]:
            by_seed, spread = seed_values(row, found["size"]), spread_at(row, found["size"])
            loss, accuracy = found["loss"], found["accuracy"]
            cells = [
                Cell(plain_label(row["encoding"])),
                Cell(f"{found['size']} px"),
                *(Cell(percent(by_seed[seed])) if seed in by_seed else NOTHING for seed in seeds),
            ]
            if several and spread:
                low, high = spread.low, spread.high
                interval = NOTHING if low is None or high is None else Cell(f"{percent(low)}-{percent(high)}")
                cells += [Cell(percent(spread.mean)), interval]
            cells += [
                Cell(f"{percent(accuracy['low'])}-{percent(accuracy['high'])}"),
                Cell(f"{loss['value']:.3f}", f"{loss['low']:.3f}-{loss['high']:.3f}"),
                Cell(f"{found['examples']:,}"),
            ]
            rows.append(cells)
            keys.append(row["encoding"])
    return Table("Every seed", columns, rows, keys=keys, heads=2, notes=_seed_notes(comparison) if rows else [])


def _seed_notes(comparison: dict[str, Any]) -> list[str]:
    examples = "The interval over test examples describes how these trained models would do on other test examples."
    if has_several_seeds(comparison):
        return [f"The interval over seeds is the t interval of their mean, clipped to 0-100 %. {examples}"]
    return [examples]


def run_table(comparison: dict[str, Any]) -> Table:
    """Return one row per training run: its folder, its duration and its final validation accuracy."""
    columns = [
        Column("encoding", numeric=False),
        Column("seed"),
        Column("run", numeric=False),
        Column("seconds"),
        Column("examples"),
        Column("validation accuracy"),
    ]
    rows = []
    for run in comparison["runs"]:
        last = run["curve"][-1] if run["curve"] else None
        rows.append(
            [
                Cell(plain_label(run["encoding"])),
                Cell(str(run["seed"])),
                Cell(run["run"]),
                Cell(f"{run['seconds']:,.0f}"),
                Cell(f"{last['examples']:,}") if last else NOTHING,
                Cell(percent(last["accuracy"])) if last else NOTHING,
            ]
        )
    return Table("Training runs", columns, rows, keys=[run["encoding"] for run in comparison["runs"]], heads=2)
