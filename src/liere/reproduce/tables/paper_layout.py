"""The paper's layout of tables: one number for each encoding and column, with the paper's beside ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from liere.report.table_cells import NOTHING, Cell, Column, Table
from liere.reproduce.measured import Measured
from liere.reproduce.outcome import number, printed
from liere.reproduce.paper_numbers import Printed
from liere.reproduce.results import Results
from liere.reproduce.row_labels import label, paper_row

__all__ = ["grid_numbers", "grid_table", "interval_note", "slips", "views_notes"]

VIEWS_NOTE = (
    "UCF101: the paper's intervals of 0.4 points are those of 56,745 clips (15 of each of 3,783 videos), counted one "
    "by one, as its code does; ours are of videos, with the probabilities of their clips averaged."
)

Ours = Callable[[str, str], Measured | None]
Paper = Callable[[str, str], Printed | None]


def grid_table(
    title: str,
    encodings: Sequence[str],
    columns: Sequence[str],
    ours: Ours,
    paper: Paper,
    *,
    digits: int = 1,
    scale: float = 100,
    best: Callable[[Sequence[float]], float] = max,
) -> Table:
    """Return the table; the best of our numbers in each column is marked, as the paper does with its own.

    Args:
        title: What it shows.
        encodings: Rows.
        columns: Columns, each of which is one of ours and, where the paper has it, one of the paper's.
        ours: Our number for an encoding, as it is in the experiment, and a column.
        paper: The paper's, for the paper's row and a column.
        digits: Decimals.
        scale: What our numbers are multiplied by.
        best: Which number of a column is the best.
    """
    rows = [paper_row(encoding, list(encodings)) for encoding in encodings]
    with_paper = {column: any(row and paper(row, column) for row in rows) for column in columns}
    heads = [Column("encoding", numeric=False)]
    for column in columns:
        heads += [Column("ours", column)] + ([Column("paper", column)] if with_paper[column] else [])
    cells = [[Cell(label(encoding))] for encoding in encodings]
    for column in columns:
        values = [ours(encoding, column) for encoding in encodings]
        known = [round(value.value, 6) for value in values if value is not None]
        for place, (value, row) in enumerate(zip(values, rows, strict=True)):
            is_best = value is not None and len(known) > 1 and round(value.value, 6) == best(known)
            cells[place].append(number(value, digits=digits, scale=scale, strong=is_best))
            if with_paper[column]:
                cells[place].append(printed(paper(row, column), digits=digits) if row else NOTHING)
    return Table(title, heads, cells, keys=[*encodings])


def grid_numbers(encodings: Sequence[str], columns: Sequence[str], ours: Ours) -> dict[str, Any]:
    """Return our numbers, as JSON holds them."""
    return {
        encoding: {column: value.as_dict() for column in columns if (value := ours(encoding, column)) is not None}
        for encoding in encodings
    }


def interval_note(results: Results) -> str:
    """Say what stands in brackets behind our numbers."""
    examples = "95 % confidence intervals over test examples"
    if not results.has_several_seeds:
        return (
            f"One seed: intervals are {examples}, for these trained models. How much seeds differ is not known, so no "
            "claim about encodings is decided."
        )
    seeds = "Ours: mean over seeds, with the worst and the best seed"
    return f"{seeds}; where there is one seed, {examples}." if results.has_single_seeds else f"{seeds}."


def slips(encodings: Sequence[str], columns: Sequence[str], paper: Paper) -> list[str]:
    """Return a sentence for each slip of the paper that the table shows."""
    notes = []
    for encoding in encodings:
        row = paper_row(encoding, list(encodings))
        for column in columns:
            figure = paper(row, column) if row else None
            if figure is not None and figure.slip:
                notes.append(f"* {label(encoding)}, {column}: a slip of the paper; {figure.slip}.")
    return notes


def views_notes(columns: Sequence[str]) -> list[str]:
    """Say how the paper counts clips, if it is about clips."""
    return [VIEWS_NOTE] if "UCF101" in columns else []
