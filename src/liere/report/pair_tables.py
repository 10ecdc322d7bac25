"""Pairwise tables: differences between encodings, with intervals and p-values."""

from __future__ import annotations

from typing import Any

from liere.evaluation.seeds import SIGNIFICANT
from liere.report.comparison_queries import compare_at, has_several_seeds, is_ahead
from liere.report.encoding_style import plain_label
from liere.report.table_cells import NOTHING, Cell, Column, Table, p_value

__all__ = ["bold_note", "pair_tables"]


def pair_tables(comparison: dict[str, Any]) -> dict[int, Table]:
    """Return one table per image size, largest first: differences between encodings, with intervals and p-values.

    With several seeds, p-values are over seeds and over test examples; with one seed, over test examples only.
    """
    columns = [
        Column("first", numeric=False),
        Column("second", numeric=False),
        Column("first minus second, points"),
        *([Column("seeds with first ahead"), Column("p, seeds")] if has_several_seeds(comparison) else []),
        Column("p, test examples"),
    ]
    pairs = comparison["pairs"]
    return {
        size: Table(
            f"Pairwise differences at {size} px",
            columns,
            [_pair(comparison, pair) for pair in pairs if pair["size"] == size],
            heads=2,
        )
        for size in sorted({pair["size"] for pair in pairs}, reverse=True)
    }


def bold_note(comparison: dict[str, Any]) -> str:
    """Return a sentence on what bold means in the pairwise tables; empty with one seed, where nothing is bold."""
    if not has_several_seeds(comparison):
        return ""
    return f"Bold: same sign in every seed, with p < {SIGNIFICANT:g} both over seeds and over test examples."


def _pair(comparison: dict[str, Any], pair: dict[str, Any]) -> list[Cell]:
    cells = [Cell(plain_label(pair["first"])), Cell(plain_label(pair["second"]))]
    examples = Cell(p_value(pair["p"]))
    if not has_several_seeds(comparison):
        return [*cells, _difference(pair["difference"], pair["low"], pair["high"]), examples]
    names = pair["first"], pair["second"]
    found = compare_at(comparison, pair["size"], *names)
    if found is None:
        return [*cells, Cell(f"{100 * pair['difference']:+z.1f}"), NOTHING, Cell("too few seeds"), examples]
    is_decided = any(is_ahead(comparison, pair["size"], *order) for order in (names, names[::-1]))
    return [
        *cells,
        _difference(found.difference, found.low, found.high),
        Cell(f"{found.ahead} of {found.pairs}"),
        Cell(p_value(found.p), strong=is_decided),
        examples,
    ]


def _difference(value: float, low: float, high: float) -> Cell:
    """Return a difference in percentage points with its interval, clipped to the possible range."""
    low, high = max(low, -1.0), min(high, 1.0)
    return Cell(f"{100 * value:+z.1f}", f"{100 * low:+z.1f} to {100 * high:+z.1f}")
