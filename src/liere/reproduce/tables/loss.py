"""Losses of the encodings on each data set."""

from __future__ import annotations

from liere.reproduce.claims import is_best
from liere.reproduce.measured import Measured
from liere.reproduce.outcome import Outcome
from liere.reproduce.paper_numbers import LOSS, Printed
from liere.reproduce.results import Results
from liere.reproduce.tables.paper_layout import grid_numbers, grid_table, interval_note, slips, views_notes
from liere.reproduce.wanted_runs import Key

__all__ = ["build_loss"]


def build_loss(results: Results) -> Outcome:
    """Return the table of losses."""
    encodings, columns = results.experiment.encodings, results.data

    def ours(encoding: str, data: str) -> Measured | None:
        found = results.found(Key(data, "", encoding))
        return found.loss if found else None

    def paper(row: str, data: str) -> Printed | None:
        return LOSS.get(row, {}).get(results.paper_data(data))

    table = grid_table("Validation loss", encodings, columns, ours, paper, digits=2, scale=1, best=min)
    claims = []
    for data in columns:
        found = {encoding: results.found(Key(data, "", encoding)) for encoding in encodings}
        claims.append(is_best(f"{data}: LieRE₈ has the lowest loss", "liere8", found, loss=True))
    notes = [interval_note(results), *views_notes(columns), *slips(encodings, columns, paper)]
    return Outcome([table], claims, {}, {"loss": grid_numbers(encodings, columns, ours)}, notes)
