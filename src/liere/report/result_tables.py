"""The numbers of a comparison as cells of text: what the page, the Markdown and the terminal show is the same."""

from __future__ import annotations

from typing import Any

from liere.evaluation.seeds import SIGNIFICANT
from liere.report.encoding_labels import plain_label
from liere.report.over_seeds import (
    compare_at,
    evaluation_at,
    has_several_seeds,
    is_decided,
    seed_values,
    spread_at,
)
from liere.report.table_cells import Cell, Column, Table, p_value, percent

__all__ = ["bold_note", "pair_tables", "result_table", "run_table", "seed_table"]

NOTHING = Cell("–")


def result_table(comparison: dict[str, Any]) -> Table:
    """Return one row per encoding: accuracy at every size, what the paper has, speed of learning and cost."""
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
    """Return one table per size, largest first: the difference of two encodings, and what it rests on.

    With several seeds that is the seeds first, then the test examples; with one seed, the test examples alone.
    """
    columns = [
        Column("first", numeric=False),
        Column("second", numeric=False),
        Column("difference, points"),
        *([Column("seeds ahead"), Column("p, seeds")] if has_several_seeds(comparison) else []),
        Column("p, test examples"),
    ]
    pairs = comparison["pairs"]
    return {
        size: Table(
            f"Pairs at {size} px",
            columns,
            [_pair(comparison, pair) for pair in pairs if pair["size"] == size],
            heads=2,
        )
        for size in sorted({pair["size"] for pair in pairs}, reverse=True)
    }


def bold_note(comparison: dict[str, Any]) -> str:
    """Say what is bold in the tables of pairs: with one seed, nothing is."""
    if not has_several_seeds(comparison):
        return ""
    return f"Bold: ahead or behind in every seed, with p < {SIGNIFICANT:g} over seeds and over test examples."


def seed_table(comparison: dict[str, Any]) -> Table:
    """Return one row per encoding and size: accuracy of every seed, its mean and intervals, and loss."""
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


def run_table(comparison: dict[str, Any]) -> Table:
    """Return one row per training run: where it is kept, how long it took and how it ended."""
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
            _range_of_seeds(row, size) or f"{percent(one['accuracy']['low'])}-{percent(one['accuracy']['high'])}",
            strong=len(rows) > 1 and percent(one["accuracy"]["value"]) == percent(best),
        )
        if one
        else NOTHING
        for row, one in zip(rows, found, strict=True)
    ]


def _range_of_seeds(row: dict[str, Any], size: int) -> str:
    """Return the worst and the best seed; nothing where there is one."""
    spread = spread_at(row, size)
    return f"{percent(spread.least)}-{percent(spread.most)}" if spread and spread.seeds > 1 else ""


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
    if has_several_seeds(comparison):
        note = "Accuracy in percent: mean over seeds, with the worst and the best seed"
        if any(len(row["seeds"]) == 1 for row in comparison["encodings"]):
            note += "; where there is one seed, with a 95 % confidence interval over test examples"
        note += "."
    else:
        methods = sorted({found["accuracy"]["method"] for found in evaluations})
        note = (
            "Accuracy in percent, one seed per encoding, with 95 % confidence intervals over test examples "
            f"({', '.join(methods)}); how much seeds differ is not known."
        )
    if len(comparison["encodings"]) > 1:
        note += " Bold: the best at its size; what rounds to the same is as good."
    return [note]


def _seed_notes(comparison: dict[str, Any]) -> list[str]:
    examples = "over test examples it is about these trained models on other test examples."
    if has_several_seeds(comparison):
        return [f"The interval over seeds is the t interval of their mean, clipped to 0-100 %; {examples}"]
    return [f"The interval {examples}"]


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


def _pair(comparison: dict[str, Any], pair: dict[str, Any]) -> list[Cell]:
    cells = [Cell(plain_label(pair["first"])), Cell(plain_label(pair["second"]))]
    examples = Cell(p_value(pair["p"]))
    if not has_several_seeds(comparison):
        return [*cells, _difference(pair["difference"], pair["low"], pair["high"]), examples]
    found = compare_at(comparison, pair["size"], pair["first"], pair["second"])
    if found is None:
        return [*cells, Cell(f"{100 * pair['difference']:+z.1f}"), NOTHING, Cell("too few seeds"), examples]
    return [
        *cells,
        _difference(found.difference, found.low, found.high),
        Cell(f"{found.ahead} of {found.pairs}"),
        Cell(p_value(found.p), strong=is_decided(found, pair["p"])),
        examples,
    ]


def _difference(value: float, low: float, high: float) -> Cell:
    """Return a difference in points with its interval, which cannot be wider than accuracies allow."""
    low, high = max(low, -1.0), min(high, 1.0)
    return Cell(f"{100 * value:+z.1f}", f"{100 * low:+z.1f} to {100 * high:+z.1f}")
