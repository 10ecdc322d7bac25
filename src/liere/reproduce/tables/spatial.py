"""The spatial reasoning task."""

from __future__ import annotations

from liere.reproduce.claims import compare
from liere.reproduce.measured import Measured
from liere.reproduce.outcome import Outcome
from liere.reproduce.outcome_charts import draw_columns
from liere.reproduce.paper_numbers import SPATIAL, SPATIAL_2M, SPATIAL_NOTE, Printed
from liere.reproduce.results import Found, Results
from liere.reproduce.row_labels import label
from liere.reproduce.tables.paper_layout import grid_numbers, grid_table, interval_note
from liere.reproduce.wanted_runs import Key
from liere.runs.conditions import Condition

__all__ = ["build_spatial"]


def build_spatial(results: Results) -> Outcome:
    """Return the table and figure of the spatial task."""
    (data,) = results.data
    encodings = results.experiment.encodings
    sizes = [test.size for test in results.experiment.data[data].tests if test.size is not None]
    columns = [f"{size} px" for size in sizes]

    def found(encoding: str, column: str) -> Found | None:
        return results.found(Key(data, "", encoding), Condition(int(column.split()[0])))

    def ours(encoding: str, column: str) -> Measured | None:
        one = found(encoding, column)
        return one.accuracy if one else None

    def paper(row: str, column: str) -> Printed | None:
        return SPATIAL.get(row, {}).get(column)

    table = grid_table("Accuracy, %", encodings, columns, ours, paper)
    claims = [
        compare(f"{column}: {label(first)} beats {label(second)}", found(first, column), found(second, column))
        for first in encodings
        if first.startswith("liere")
        for second in encodings
        if second.startswith(("absolute", "rope_mixed"))
        for column in (columns[0], columns[-1])
        if second != "rope_mixed" or column == columns[-1]
    ]
    notes = [interval_note(results), f"Paper: {SPATIAL_NOTE}."]
    longer = [key for key in results.runs if key.variant]
    for key in longer:
        if (one := results.found(key, Condition(sizes[0]))) is not None:
            notes.append(
                f"{label(key.encoding)}, {key.variant}, {columns[0]}: {100 * one.accuracy.value:.1f} %; "
                f"paper {SPATIAL_2M.value} %."
            )
    figure = {"Accuracy": draw_columns("Accuracy by image size, %", encodings, columns, ours)}
    return Outcome([table], claims, figure, {"accuracy": grid_numbers(encodings, columns, ours)}, notes)
