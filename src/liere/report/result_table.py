"""The result table of a comparison, shared by the HTML page, the Markdown page and the terminal."""

from __future__ import annotations

from typing import Any

from liere.report.comparison_queries import evaluation_at, has_several_seeds, spread_at
from liere.report.encoding_style import plain_label
from liere.report.table_cells import NOTHING, Cell, Column, Table, percent

__all__ = ["result_table"]


def result_table(comparison: dict[str, Any]) -> Table:
    """Return one row per encoding: accuracy at every size, the paper's numbers, learning speed and cost."""
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
        f"Examples to {target}: training examples seen when validation accuracy first reached {target}, median over "
        "seeds. Seconds: duration of one training run, mean over seeds."
    )
    return Table("Results", columns, cells, keys=[row["encoding"] for row in rows], notes=notes)


def _accuracies(rows: list[dict[str, Any]], size: int) -> list[Cell]:
    """Return one column of accuracies; the best is bold, as are all values that round to the same number."""
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
    """Return the range from the worst to the best seed; empty if there is only one."""
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
        note = "Accuracy in percent: mean over seeds, followed by the worst and the best seed"
        if any(len(row["seeds"]) == 1 for row in comparison["encodings"]):
            note += " (with one seed: the 95 % confidence interval over test examples)"
        note += "."
    else:
        methods = sorted({found["accuracy"]["method"] for found in evaluations})
        note = (
            "Accuracy in percent, one seed per encoding, with 95 % confidence intervals over test examples "
            f"({', '.join(methods)}). The variation between seeds is unknown."
        )
    if len(comparison["encodings"]) > 1:
        note += " Bold: the best at each size, including ties after rounding."
    left_out = {found["size"]: found["left_out"] for found in evaluations if "left_out" in found}
    if left_out:
        counts = ", ".join(f"{count} at {size} px" for size, count in left_out.items())
        note += f" Test examples that not all runs have are left out of all results: {counts}."
    return [note]


def _option_notes(comparison: dict[str, Any]) -> list[str]:
    """Return a note on encodings with options beyond the recipe, since they do not quite share one recipe."""
    options = [
        f"{plain_label(row['encoding'])}: {', '.join(f'{name} {value}' for name, value in row['options'].items())}"
        for row in comparison["encodings"]
        if row.get("options")
    ]
    return [f"Encoding options: {'; '.join(options)}."] if options else []


def _paper_notes(comparison: dict[str, Any]) -> list[str]:
    note = comparison.get("paper_note")
    others = [
        f"{row['paper_label']} is shown next to {plain_label(row['encoding'])}"
        for row in comparison["encodings"]
        if row.get("paper") and row.get("paper_label") and row["paper_label"] != plain_label(row["encoding"])
    ]
    parts = [part for part in (note, ", ".join(others)) if part]
    return [f"Paper: {'; '.join(parts)}."] if parts else []
