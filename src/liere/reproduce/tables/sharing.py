"""Accuracy with generators shared across heads and layers."""

from __future__ import annotations

from typing import Any

from liere.report.table_cells import NOTHING, Cell, Column, Table
from liere.reproduce.claims import compare
from liere.reproduce.outcome import Outcome, number, printed
from liere.reproduce.paper_numbers import SHARING, SHARING_NOTE, Printed
from liere.reproduce.results import Results
from liere.reproduce.row_labels import label
from liere.reproduce.tables.paper_layout import interval_note
from liere.reproduce.wanted_runs import Key
from liere.runs.cost import forward_operations, scaled

__all__ = ["build_sharing"]


def build_sharing(results: Results) -> Outcome:
    """Return the table of accuracies with shared generators."""
    (data,) = results.data
    encodings = results.experiment.encodings
    columns = [Column("generators shared", numeric=False)]
    for encoding in encodings:
        columns += [
            Column("ours", label(encoding)),
            Column("paper", label(encoding)),
            Column("parameters", label(encoding)),
            Column("multiply-adds", label(encoding)),
        ]
    rows, numbers, claims = [], dict[str, dict[str, Any]](), []
    for variant in results.variants:
        cells = [Cell(variant)]
        for encoding in encodings:
            key = Key(data, variant, encoding)
            if key not in results.runs:
                cells += [NOTHING, printed(SHARING.get(variant, {}).get(encoding)), NOTHING, NOTHING]
                continue
            found = results.found(key)
            paper: Printed | None = SHARING.get(variant, {}).get(encoding)
            cost = forward_operations(results.runs[key][0].config)
            cells += [
                number(found.accuracy if found else None),
                printed(paper),
                Cell(f"{results.parameters(key):,}"),
                Cell(scaled(cost)),
            ]
            if found:
                numbers.setdefault(variant, {})[encoding] = found.accuracy.as_dict()
                if variant != "nothing" and encoding != "rope_mixed":
                    text = f"{label(encoding)}: separate generators are better than generators shared {variant}"
                    claims.append(compare(text, results.found(Key(data, "nothing", encoding)), found))
                    text = f"{label(encoding)}, shared {variant}, still beats RoPE-Mixed"
                    claims.append(compare(text, found, results.found(Key(data, "nothing", "rope_mixed"))))
        rows.append(cells)
    notes = [
        interval_note(results),
        "* " + SHARING_NOTE,
        "Multiply-adds: per image and forward pass, including the rotations and their exponential.",
    ]
    return Outcome([Table("Accuracy with shared generators, %", columns, rows)], claims, {}, numbers, notes)
