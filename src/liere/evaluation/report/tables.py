"""The numbers of a comparison as cells of text: what the page, the Markdown and the terminal show is the same."""

from __future__ import annotations

from typing import Any

from liere.evaluation.report.cells import Cell, Column, Table, p_value, percent
from liere.evaluation.report.names import plain_label

__all__ = ["SIGNIFICANT", "evaluation_at", "pair_tables", "result_table", "run_table", "seed_table"]

SIGNIFICANT = 0.05  # a p-value below it is marked, and called so
NOTHING = Cell("–")


def evaluation_at(row: dict[str, Any], size: int) -> dict[str, Any] | None:
    """Return an encoding's evaluation at a size, if it has one."""
    return next((found for found in row["evaluations"] if found["size"] == size), None)


def result_table(comparison: dict[str, Any]) -> Table:
    """Return one row an encoding: accuracy at every size, what the paper has, speed of learning and cost."""
    rows, sizes = comparison["encodings"], comparison["sizes"]
    target = f"{100 * comparison['target_accuracy']:g} %"
    paper_sizes = [size for size in sizes if any(str(size) in (row.get("paper") or {}) for row in rows)]
    columns = [
        Column("encoding", numeric=False),
        *(Column(f"{size} px", "accuracy") for size in sizes),
        *(Column(f"{size} px", "paper") for size in paper_sizes),
        Column(f"examples to {target}"),
        Column("seconds"),
        Column("parameters"),
    ]
    accuracies = [_accuracies(rows, size) for size in sizes]
    cells = [
        [
            Cell(plain_label(row["encoding"])),
            *(column[place] for column in accuracies),
            *(_paper(row, size) for size in paper_sizes),
            _examples_to_target(row),
            Cell(f"{row['seconds']:,.0f}"),
            Cell(f"{row['parameters']:,}"),
        ]
        for place, row in enumerate(rows)
    ]
    notes = [
        *_accuracy_notes(comparison),
        *_option_notes(comparison),
        *(_paper_notes(comparison) if paper_sizes else []),
    ]
    notes.append(
        f"Examples to {target}: how many were seen when validation accuracy first was {target}, median over seeds. "
        "Seconds: of a training run, mean over seeds."
    )
    return Table("Results", columns, cells, keys=[row["encoding"] for row in rows], notes=notes)


def pair_tables(comparison: dict[str, Any]) -> dict[int, Table]:
    """Return one table a size, largest first: the difference of two encodings, and whether it may be chance."""
    columns = [
        Column("first", numeric=False),
        Column("second", numeric=False),
        Column("difference, points"),
        Column("p"),
    ]
    pairs = comparison["pairs"]
    return {
        size: Table(
            f"Pairs at {size} px",
            columns,
            [_pair(pair) for pair in pairs if pair["size"] == size],
            heads=2,
        )
        for size in sorted({pair["size"] for pair in pairs}, reverse=True)
    }


def seed_table(comparison: dict[str, Any]) -> Table:
    """Return one row an encoding and size: accuracy of every seed, and loss."""
    seeds = sorted({seed for row in comparison["encodings"] for seed in row["seeds"]})
    columns = [
        Column("encoding", numeric=False),
        Column("size"),
        *(Column(f"seed {seed}", "accuracy") for seed in seeds),
        Column("loss"),
        Column("test examples"),
    ]
    rows, keys = [], []
    for row in comparison["encodings"]:
        for found in row["evaluations"]:
            by_seed = dict(zip(row["seeds"], found["by_seed"], strict=True))
            loss = found["loss"]
            rows.append(
                [
                    Cell(plain_label(row["encoding"])),
                    Cell(f"{found['size']} px"),
                    *(Cell(percent(by_seed[seed])) if seed in by_seed else NOTHING for seed in seeds),
                    Cell(f"{loss['value']:.3f}", f"{loss['low']:.3f}-{loss['high']:.3f}"),
                    Cell(f"{found['examples']:,}"),
                ]
            )
            keys.append(row["encoding"])
    return Table("Every seed", columns, rows, keys=keys, heads=2)


def run_table(comparison: dict[str, Any]) -> Table:
    """Return one row a training run: where it is kept, how long it took and how it ended."""
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


def _accuracies(rows: list[dict[str, Any]], size: int) -> list[Cell]:
    """Return a column; the best is marked, and whatever cannot be told from it once rounded."""
    found = [evaluation_at(row, size) for row in rows]
    best = max((one["accuracy"]["value"] for one in found if one), default=0.0)
    return [
        Cell(
            percent(one["accuracy"]["value"]),
            f"{percent(one['accuracy']['low'])}-{percent(one['accuracy']['high'])}",
            strong=len(rows) > 1 and percent(one["accuracy"]["value"]) == percent(best),
        )
        if one
        else NOTHING
        for one in found
    ]


def _paper(row: dict[str, Any], size: int) -> Cell:
    value = (row.get("paper") or {}).get(str(size))
    return NOTHING if value is None else Cell(f"{value:.1f}")


def _examples_to_target(row: dict[str, Any]) -> Cell:
    reached, seeds = row["seeds_at_target"], len(row["seeds"])
    hint = f"{reached} of {seeds} seeds" if 0 < reached < seeds else ""
    examples = row["examples_to_target"]
    return Cell("not reached" if examples is None else f"{examples:,.0f}", hint)


def _accuracy_notes(comparison: dict[str, Any]) -> list[str]:
    evaluations = [found for row in comparison["encodings"] for found in row["evaluations"]]
    if not evaluations:
        return []
    methods = sorted({found["accuracy"]["method"] for found in evaluations})
    note = f"Accuracy in percent, with intervals of 95 % ({', '.join(methods)}) over test examples, not over seeds."
    if len(comparison["encodings"]) > 1:
        note += " Bold: the best at its size; what rounds to the same is as good."
    return [note]


def _option_notes(comparison: dict[str, Any]) -> list[str]:
    """Say what an encoding has that the recipe does not: it is not quite one recipe then."""
    options = [
        f"{plain_label(row['encoding'])}: {', '.join(f'{name} {value}' for name, value in row['options'].items())}"
        for row in comparison["encodings"]
        if row.get("options")
    ]
    return [f"Options of their own: {'; '.join(options)}."] if options else []


def _paper_notes(comparison: dict[str, Any]) -> list[str]:
    note = comparison.get("paper_note")
    others = [
        f"{row['paper_label']} beside {plain_label(row['encoding'])}"
        for row in comparison["encodings"]
        if row.get("paper") and row.get("paper_label") and row["paper_label"] != plain_label(row["encoding"])
    ]
    parts = [part for part in (note, ", ".join(others)) if part]
    return [f"Paper: {'; '.join(parts)}."] if parts else []


def _pair(pair: dict[str, Any]) -> list[Cell]:
    difference, low, high = (f"{100 * pair[key]:+z.1f}" for key in ("difference", "low", "high"))
    return [
        Cell(plain_label(pair["first"])),
        Cell(plain_label(pair["second"])),
        Cell(difference, f"{low} to {high}"),
        Cell(p_value(pair["p"]), strong=pair["p"] < SIGNIFICANT),
    ]
