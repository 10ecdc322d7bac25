"""Tables in the paper's layout: one number per encoding and column, with the paper's next to ours."""

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
    "UCF101: the paper's intervals of 0.4 points treat 56,745 clips (15 from each of 3,783 videos) as independent "
    "examples, as its code does; ours are over videos, with probabilities averaged over the clips of each video."
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
    """Return a table in the paper's layout; our best number in each column is bold, as in the paper.

    Args:
        title: Title of the table.
        encodings: Rows.
        columns: Columns; each becomes one column with our numbers and, if available, one with the paper's.
        ours: Returns our number for an encoding of the experiment and a column.
        paper: Returns the paper's number for a row of the paper and a column.
        digits: Number of decimals.
        scale: Factor applied to our numbers.
        best: Selects the best number of a column.
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
    """Return our numbers as a dict for JSON."""
    return {
        encoding: {column: value.as_dict() for column in columns if (value := ours(encoding, column)) is not None}
        for encoding in encodings
    }


def interval_note(results: Results) -> str:
    """Return a note that explains the ranges in parentheses after our numbers."""
    examples = "95 % confidence interval over test examples"
    if not results.has_several_seeds:
        return (
            f"One seed: in parentheses the {examples}, for these trained models. The variation between seeds is "
            "unknown, so no claim about encodings is decided."
        )
    seeds = "Ours: mean over seeds, in parentheses the worst and the best seed"
    return f"{seeds} (with one seed: the {examples})." if results.has_single_seeds else f"{seeds}."


def slips(encodings: Sequence[str], columns: Sequence[str], paper: Paper) -> list[str]:
    """Return a note for each error of the paper that the table shows."""
    notes = []
    for encoding in encodings:
        row = paper_row(encoding, list(encodings))
        for column in columns:
            figure = paper(row, column) if row else None
            if figure is not None and figure.slip:
                notes.append(f"* {label(encoding)}, {column}: error in the paper; {figure.slip}.")
    return notes


def views_notes(columns: Sequence[str]) -> list[str]:
    """Return a note on how the paper counts clips, if a column is about clips."""
    return [VIEWS_NOTE] if "UCF101" in columns else []
