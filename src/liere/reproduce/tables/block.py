"""Accuracy by block size."""

from __future__ import annotations

from typing import Any

from liere.report.drawing import Drawing
from liere.report.table_cells import Cell, Column, Table
from liere.reproduce.claims import is_best
from liere.reproduce.measured import Measured
from liere.reproduce.outcome import Outcome, number, printed
from liere.reproduce.outcome_charts import draw_columns
from liere.reproduce.paper_numbers import BLOCK
from liere.reproduce.results import Results
from liere.reproduce.tables.paper_layout import interval_note
from liere.reproduce.wanted_runs import Key
from liere.runs.encoding_text import parse_encoding

__all__ = ["build_block"]


def build_block(results: Results) -> Outcome:
    """Return the table and figure of block sizes, with the number of generator parameters."""
    rows, claims, notes = [], [], [interval_note(results)]
    numbers, figures = dict[str, dict[str, Any]](), dict[str, Drawing]()
    for data in results.data:
        encodings = results.encodings(data)
        known = BLOCK.get(results.paper_data(data), {})
        for encoding in encodings:
            key = Key(data, "", encoding)
            found, size = results.found(key), block_size(results, key)
            paper = known.get(64 if encoding == "liere" else size)
            parameters = results.parameters(key)
            share = 100 * parameters / results.runs[key][0].result()["parameters"]
            rows.append(
                [
                    Cell(data),
                    Cell(f"{size} (dense; paper 64)" if encoding == "liere" and size != 64 else str(size)),
                    Cell(f"{parameters:,}"),
                    printed(paper[1] if paper else None, digits=0),
                    Cell(f"{share:.2f} %"),
                    number(found.accuracy if found else None, digits=2),
                    printed(paper[0] if paper else None, digits=2),
                ]
            )
            if paper and paper[1].slip and (note := f"* {data}: error in the paper; {paper[1].slip}.") not in notes:
                notes.append(note)
            if found:
                numbers.setdefault(data, {})[str(size)] = found.accuracy.as_dict() | {"parameters": parameters}
        claims.append(
            is_best(
                f"{data}: block size 8 is the best", "liere8", {e: results.found(Key(data, "", e)) for e in encodings}
            )
        )
        figures[f"Block sizes, {data}"] = _figure(results, data)
    columns = [
        Column("data set", numeric=False),
        Column("block"),
        Column("parameters, ours"),
        Column("paper", "parameters"),
        Column("fraction of the model"),
        Column("ours", "accuracy, %"),
        Column("paper", "accuracy, %"),
    ]
    return Outcome([Table("Accuracy by block size", columns, rows, heads=2)], claims, figures, numbers, notes)


def block_size(results: Results, key: Key) -> int:
    """Return the block size of a run, which is the head width for dense generators."""
    name, _ = parse_encoding(key.encoding)
    if name == "rope_mixed":
        return 2
    if name.removeprefix("liere"):
        return int(name.removeprefix("liere"))
    from liere.presets import ViTSize, resolve_size

    model = results.runs[key][0].config.model
    size = resolve_size(model.size, model.model_dump(include=set(ViTSize._fields)))
    return size.dim // size.heads


def _figure(results: Results, data: str) -> Drawing:
    keys = {str(block_size(results, Key(data, "", e))): Key(data, "", e) for e in results.encodings(data)}

    def ours(_: str, size: str) -> Measured | None:
        found = results.found(keys[size])
        return found.accuracy if found else None

    return draw_columns(f"Accuracy by block size ({data}), %", ["LieRE"], list(keys), ours)
