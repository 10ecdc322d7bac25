"""Tables of what a GPU is predicted to take."""

from __future__ import annotations

from typing import Any

from liere.bench.record import group_rows
from liere.bench.table_parts import Table, seconds

__all__ = ["gpu_tables"]


def gpu_tables(record: dict[str, Any]) -> list[Table]:
    """Return the predicted train steps, and the two forms of the exponential."""
    steps = [row for row in record["rows"] if row["part"] == "step"]
    gpus = list(steps[0]["predicted_seconds"])
    header = ["model", "computed with", "kernels", "GB", "GFLOP", *(f"{gpu}, to absolute" for gpu in gpus)]
    tables = []
    for situation, rows in group_rows(steps, "situation").items():
        first = rows[0]
        cells = [
            [row["model"], row["how"], *_counts(row), *(f"{row['ratio'][gpu]:.2f}" for gpu in gpus)] for row in rows
        ]
        cells[0][-len(gpus) :] = [f"1 = {seconds(first['predicted_seconds'][gpu])}" for gpu in gpus]
        tables.append(Table(f"PREDICTED, not measured: a train step. {situation}", header, cells, []))
    forms = [row for row in record["rows"] if row["part"] == "forms"]
    cells = [
        [
            str(row["block_size"]),
            how,
            *_counts(row[how]),
            f"{row[how]['stored_bytes'] / 1e9:.2f}",
            *(seconds(row[how]["predicted_seconds"][gpu]) for gpu in gpus),
        ]
        for row in forms
        for how in ("operators", "fused")
    ]
    header = ["block", "form", "kernels", "GB", "GFLOP", "GB stored", *gpus]
    title = f"PREDICTED, not measured: operators, or torch.compile? {forms[0]['situation']}"
    return [*tables, Table(title, header, cells, record["notes"])]


def _counts(row: dict[str, Any]) -> list[str]:
    return [f"{row['launches']:,}", f"{row['bytes'] / 1e9:.1f}", f"{row['flops'] / 1e9:,.0f}"]
