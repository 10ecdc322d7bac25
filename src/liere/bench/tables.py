"""Records as tables for the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from liere.bench.record import group_rows

__all__ = ["Table", "make_tables"]


class Table(NamedTuple):
    """Cells, and what to read above and below them."""

    title: str
    header: list[str]
    rows: list[list[str]]
    legend: list[str]


def make_tables(record: dict[str, Any]) -> list[Table]:
    """Return the tables of a record, one a situation."""
    return TABLES[record["question"]](record)


def seconds(value: float) -> str:
    """Return a time in readable units.

    Example:
        >>> seconds(0.0123), seconds(3.456), seconds(-0.0004)
        ('12.3 ms', '3.46 s', '-0.4 ms')
    """
    return f"{value:.2f} s" if abs(value) >= 1 else f"{1000 * value:.1f} ms"


def _rotations(record: dict[str, Any]) -> list[Table]:
    def cells(part: dict[str, Any]) -> list[str]:
        return [
            seconds(part["seconds"]["matrix_exp"]["median"]),
            *(
                f"{part['speedup'][name]['median']:.1f} x {100 * part['share_of_limit'][name]['median']:4.0f} %"
                for name in ("exp_skew", "layer")
            ),
        ]

    header = ["case", "forward: matrix_exp", "exp_skew", "layer", "forward + backward: matrix_exp", "exp_skew", "layer"]
    rows = [[row["case"], *cells(row["forward"]), *cells(row["forward_backward"])] for row in record["rows"]]
    legend = [
        "x: times as fast as torch.matrix_exp. %: of the limit, which is the bare matrix products of exp_skew.",
        "exp_skew: of the same matrices. layer: from positions and generators; where positions are multiples of",
        "others it needs fewer products, and may go beyond the limit.",
    ]
    return [Table("What does the exponential cost?", header, rows, legend)]


def _step(record: dict[str, Any]) -> list[Table]:
    def cells(part: dict[str, Any]) -> list[str]:
        return [seconds(part["seconds"]["median"]), f"{part['ratio']['median']:.3f}"]

    header = ["model", "train step", "to absolute", "inference", "to absolute"]
    tables = [
        Table(
            f"What does a position encoding cost ViT-S? {situation}",
            header,
            [[row["model"], *cells(row["train"]), *cells(row["inference"])] for row in rows],
            [],
        )
        for situation, rows in group_rows(record["rows"], "situation").items()
    ]
    legend = ["Train step: forward, loss, backward. Inference: rotations are kept from the call before."]
    return [*tables[:-1], tables[-1]._replace(legend=legend + record["notes"]), *_placement(record)]


def _placement(record: dict[str, Any]) -> list[Table]:
    rows = [row for row in record["rows"] if row.get("placement")]
    if not rows:
        return []
    header = ["situation", "model", "train step", "to absolute", "to the same without"]
    cells = [
        [
            row["situation"],
            row["placement"]["of"],
            seconds(row["train"]["seconds"]["median"]),
            f"{row['train']['ratio']['median']:.3f}",
            f"{row['placement']['ratio']['median']:.3f}",
        ]
        for row in rows
    ]
    legend = [f"position_shift={rows[0]['placement']['shift']}, one draw per step. Inference is not placed."]
    return [Table("What does random placement cost a train step?", header, cells, legend)]


def _memory(record: dict[str, Any]) -> list[Table]:
    def gigabytes(value: dict[str, Any]) -> str:
        return f"{value['median'] / 2**30:.2f} GB"

    return [
        Table(
            f"How much memory does a train step need? {situation}",
            ["model", "before", "peak", "to absolute"],
            [
                [
                    row["model"],
                    gigabytes(row["before_bytes"]),
                    gigabytes(row["peak_bytes"]),
                    f"{row['ratio']['median']:.3f}",
                ]
                for row in rows
            ],
            [],
        )
        for situation, rows in group_rows(record["rows"], "situation").items()
    ]


def _scaling(record: dict[str, Any]) -> list[Table]:
    rows = [
        [
            row["varied"],
            str(row["value"]),
            seconds(row["absolute_seconds"]["median"]),
            seconds(row["liere_seconds"]["median"]),
            f"{row['ratio']['median']:.3f}",
            seconds(row["excess_seconds"]["median"]),
        ]
        for row in record["rows"]
    ]
    header = ["varied", "value", "absolute", "LieRE", "ratio", "difference"]
    legend = ["A train step of a transformer of 2 layers of ViT-S."]
    return [Table("How does the cost of LieRE grow?", header, rows, legend)]


def _loading(record: dict[str, Any]) -> list[Table]:
    rows = [
        [
            row["case"],
            seconds(row["seconds"]["median"]),
            f"{row['images_a_second']:,.0f}",
            f"{row['ratio']['median']:.3f}",
        ]
        for row in record["rows"]
    ]
    header = ["case", "a batch", "images a second", "to the train step"]
    legend = [
        *record["notes"],
        "To the train step: what loading adds to a step without workers. Below 1, one worker hides it.",
    ]
    return [Table("Is it the data that training waits for?", header, rows, legend)]


TABLES: dict[str, Callable[[dict[str, Any]], list[Table]]] = {
    "rotations": _rotations,
    "step": _step,
    "memory": _memory,
    "scaling": _scaling,
    "loading": _loading,
}
