"""Tables of the studies of random placement."""

from __future__ import annotations

import statistics
from typing import Any

from tools.docs_site.committed import numbers_of
from tools.docs_site.plain_tables import with_seeds

from liere.report.encoding_style import plain_label
from liere.report.table_cells import NOTHING, Cell, Column, Table
from liere.reproduce.row_labels import label

__all__ = ["attention_scale", "sensitivity", "study_table"]

PLACED = {False: "without placement and noise", True: "the recipe"}


def study_table(name: str) -> list[Table]:
    """Return a study: one row per variation and encoding, one column per size and policy."""
    study = numbers_of(f"studies/{name}.json")
    columns = dict.fromkeys((row.get("policy", ""), row["size"]) for row in study["rows"])
    groups: dict[tuple[str, str], dict[tuple[str, int], Cell]] = {}
    for row in study["rows"]:
        key = (row["variant"], label(row["encoding"]))
        groups.setdefault(key, {})[row.get("policy", ""), row["size"]] = with_seeds(row["by_seed"])
    several = len({variant for variant, _ in groups}) > 1
    heads = [Column("variation", numeric=False)] * several + [Column("encoding", numeric=False)]
    rows = [
        [*(Cell(text) for text in (key if several else key[1:])), *(cells.get(column, NOTHING) for column in columns)]
        for key, cells in groups.items()
    ]
    notes = [f"Accuracy in percent, mean over seeds; in parentheses every seed. {study['note']}"]
    if missing := study.get("missing_runs"):
        notes.append(f"{missing} runs of this study have not been made.")
    named = [Column(f"{size} px", policy) for policy, size in columns]
    return [Table(study["title"], [*heads, *named], rows, heads=len(heads), notes=notes)]


def attention_scale() -> list[Table]:
    """Return accuracy on larger images with and without placement and noise, with both scales of attention."""
    rows = [row for row in numbers_of("attention_scale.json")["rows"] if row["size"] > 108]
    columns = sorted({(row["size"], row["attention_scale"]) for row in rows})
    groups: dict[tuple[bool, str], dict[tuple[int, str], Cell]] = {}
    for row in rows:
        key = (row["position_shift"] > 0, plain_label(row["encoding"]))
        cells = groups.setdefault(key, {})
        cells[row["size"], row["attention_scale"]] = with_seeds(row["by_seed"].values())
    lines = [
        [Cell(PLACED[placed]), Cell(encoding), *(cells.get(column, NOTHING) for column in columns)]
        for (placed, encoding), cells in sorted(groups.items(), key=lambda item: item[0][0])
    ]
    heads = [Column("trained with", numeric=False), Column("encoding", numeric=False)]
    named = [Column(scale, f"{size} px") for size, scale in columns]
    note = "Accuracy in percent, mean over seeds; in parentheses every seed. " + _test_examples(rows)
    return [Table("Placement, noise and the scale of attention", [*heads, *named], lines, heads=2, notes=[note])]


def sensitivity() -> list[Table]:
    """Return, layer by layer, how relative generators are and how much attention moves with the grid."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in numbers_of("placement_sensitivity.json")["rows"]:
        state = "at the start" if not row["trained"] else f"trained: {PLACED[row['position_shift'] > 0]}"
        groups.setdefault((plain_label(row["encoding"]), state), []).append(row)
    measures = {
        "relativity": "relativity error",
        "patches": "attention of patches that moves",
        "prefix": "attention of CLS that moves",
    }
    lines = []
    for (encoding, state), rows in _in_order(groups):
        means = [
            " / ".join(
                f"{statistics.fmean(layer[measure] for layer in layers):.2f}"
                for layers in zip(*(row["layers"] for row in rows), strict=True)
            )
            for measure in measures
        ]
        lines.append([Cell(encoding), Cell(state), Cell(str(len({row["seed"] for row in rows}))), *map(Cell, means)])
    names = [Column("encoding", numeric=False), Column("state", numeric=False), Column("seeds")]
    columns = [*names, *map(Column, measures.values())]
    note = "Layers 1 / 2 / 3 / 4, mean over seeds. Of the attention: 0 is nothing, 1 is all of it."
    return [Table("What moves when the grid moves", columns, lines, heads=2, notes=[note])]


def _in_order(
    groups: dict[tuple[str, str], list[dict[str, Any]]],
) -> list[tuple[tuple[str, str], list[dict[str, Any]]]]:
    states = ["at the start", *(f"trained: {text}" for text in PLACED.values())]
    names = list(dict.fromkeys(encoding for encoding, _ in groups))
    return sorted(groups.items(), key=lambda item: (names.index(item[0][0]), states.index(item[0][1])))


def _test_examples(rows: list[dict[str, Any]]) -> str:
    """Return a sentence with the number of test examples at each size."""
    counts = {row["size"]: row["examples"] for row in rows}
    return "Test examples: " + ", ".join(f"{count} at {size} px" for size, count in sorted(counts.items())) + "."
