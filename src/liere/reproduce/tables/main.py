"""Accuracies of the encodings on each data set."""

from __future__ import annotations

from liere.report.drawing import Drawing
from liere.report.table_cells import NOTHING, Cell, Column, Table
from liere.reproduce.claims import compare, is_best
from liere.reproduce.measured import Measured
from liere.reproduce.outcome import Claim, Outcome
from liere.reproduce.outcome_charts import draw_columns
from liere.reproduce.paper_numbers import MAIN, Printed
from liere.reproduce.results import Results
from liere.reproduce.row_labels import label
from liere.reproduce.tables.paper_layout import grid_numbers, grid_table, interval_note, slips, views_notes
from liere.reproduce.wanted_runs import Key

__all__ = ["build_main"]


def build_main(results: Results) -> Outcome:
    """Return the table and figure of accuracies."""
    encodings, columns = results.experiment.encodings, results.data

    def ours(encoding: str, data: str) -> Measured | None:
        found = results.found(Key(data, "", encoding))
        return found.accuracy if found else None

    def paper(row: str, data: str) -> Printed | None:
        return MAIN.get(row, {}).get(results.paper_data(data))

    table = grid_table("Top-1 accuracy, %", encodings, columns, ours, paper)
    claims = [claim for data in columns for claim in _accuracy_claims(results, data)]
    numbers = grid_numbers(encodings, columns, ours)
    for encoding, row in numbers.items():
        for data, cell in row.items():
            key = Key(data, "", encoding)
            cell["seconds"] = round(results.seconds(key), 1)
    figure: dict[str, Drawing] = {"Accuracy": draw_columns("Accuracy, %", encodings, columns, ours, ordered=False)}
    notes = [interval_note(results), *views_notes(columns), *slips(encodings, columns, paper)]
    return Outcome([table, _seed_table(results)], claims, figure, {"accuracy": numbers}, notes)


def _accuracy_claims(results: Results, data: str) -> list[Claim]:
    encodings = results.encodings(data)
    found = {encoding: results.found(Key(data, "", encoding)) for encoding in encodings}
    claims = [is_best(f"{data}: LieRE₈ is the most accurate", "liere8", found)]
    claims.append(compare(f"{data}: LieRE₈ beats RoPE-Mixed", found.get("liere8"), found.get("rope_mixed")))
    for baseline in ("absolute:init_std=1", "absolute"):
        if baseline in found:
            claims.append(compare(f"{data}: LieRE₈ beats {label(baseline)}", found.get("liere8"), found[baseline]))
    return claims


def _seed_table(results: Results) -> Table:
    columns = [Column("encoding", numeric=False), *(Column(data) for data in results.data)]
    rows = []
    for encoding in results.experiment.encodings:
        cells = [Cell(label(encoding))]
        for data in results.data:
            found = results.found(Key(data, "", encoding))
            cells.append(Cell(", ".join(f"{100 * value:.1f}" for value in found.by_seed)) if found else NOTHING)
        rows.append(cells)
    return Table("Accuracy of each seed, %", columns, rows)
