"""Accuracy at resolutions not seen in training, with extended or rescaled positions."""

from __future__ import annotations

from typing import Any

from liere.report.table_cells import Table
from liere.reproduce.claims import compare
from liere.reproduce.measured import Measured
from liere.reproduce.outcome import Claim, Outcome
from liere.reproduce.outcome_charts import draw_columns
from liere.reproduce.paper_numbers import P_VALUES
from liere.reproduce.results import Found, Results
from liere.reproduce.row_labels import label
from liere.reproduce.tables.paper_layout import grid_numbers, grid_table, interval_note
from liere.reproduce.wanted_runs import Key
from liere.runs.conditions import Condition

__all__ = ["build_resolution"]

POLICIES = ("extend", "rescale")


def build_resolution(results: Results) -> Outcome:
    """Return tables and figures of accuracy by resolution, as trained and after fine-tuning at another resolution."""
    (data,) = results.data
    encodings = results.experiment.encodings
    tests = results.experiment.data[data].tests
    sizes = sorted({test.size for test in tests if test.size is not None})
    tables: list[Table] = []
    figures, numbers = {}, dict[str, Any]()
    for fine_tuned in dict.fromkeys(key.fine_tuned for key in results.runs):
        recipe = "fine-tuned" if fine_tuned else "as trained"
        for policy in POLICIES:

            def ours(
                encoding: str, column: str, fine_tuned: bool = fine_tuned, policy: str = policy
            ) -> Measured | None:
                found = _found(results, data, encoding, fine_tuned, int(column.split()[0]), policy)
                return found.accuracy if found else None

            columns = [f"{size} px" for size in sizes]
            title = f"Accuracy {recipe}, positions {policy}, %"
            tables.append(grid_table(title, encodings, columns, ours, lambda row, column: None))
            figures[f"{recipe.capitalize()}, {policy}"] = draw_columns(title, encodings, columns, ours)
            numbers[f"{recipe}, {policy}"] = grid_numbers(encodings, columns, ours)
    notes = [
        interval_note(results),
        "The paper shows this as a figure without numbers.",
        "Absolute positions are interpolated under both policies.",
    ]
    return Outcome(tables, _claims(results, data, sizes), figures, numbers, notes)


def _found(results: Results, data: str, encoding: str, fine_tuned: bool, size: int, policy: str) -> Found | None:
    return results.found(Key(data, "", encoding, fine_tuned), Condition(size, policy))


def _claims(results: Results, data: str, sizes: list[int]) -> list[Claim]:
    largest, claims = sizes[-1], []
    for fine_tuned in dict.fromkeys(key.fine_tuned for key in results.runs):
        recipe = "fine-tuned" if fine_tuned else "as trained"
        dense, mixed = (_found(results, data, name, fine_tuned, largest, "extend") for name in ("liere", "rope_mixed"))
        claims.append(compare(f"{recipe}, {largest} px: dense LieRE beats RoPE-Mixed", dense, mixed))
        size = 384 if 384 in sizes else sizes[-2] if len(sizes) > 1 else largest
        eight, mixed = (_found(results, data, name, fine_tuned, size, "extend") for name in ("liere8", "rope_mixed"))
        text = f"{recipe}, {size} px: LieRE₈ beats RoPE-Mixed (paper: p = {P_VALUES['384 px']:.1e} at 384 px)"
        claims.append(compare(text, eight, mixed))
        for name in ("rope_mixed", "liere"):
            extend, rescale = (_found(results, data, name, fine_tuned, largest, policy) for policy in POLICIES)
            text = f"{recipe}, {largest} px, {label(name)}: extended positions are better than rescaled ones"
            claims.append(compare(text, extend, rescale))
    return claims
