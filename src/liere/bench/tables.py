"""Text tables of benchmark records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from liere.bench.gpu_tables import gpu_tables
from liere.bench.record import group_rows
from liere.bench.table_parts import Table, rule, seconds, with_quartiles

__all__ = ["make_tables"]

BASELINE = "absolute"


def make_tables(record: dict[str, Any]) -> list[Table]:
    """Return the tables of a record, one per situation."""
    return TABLES[record["question"]](record)


def _rotations(record: dict[str, Any]) -> list[Table]:
    header = ["case", "matrix_exp", "exp_skew speedup", "% of limit", "layer speedup", "% of limit"]
    passes = {"forward": "Forward pass", "forward_backward": "Forward and backward pass"}
    tables = []
    for part, name in passes.items():
        rows = [
            [
                row["case"],
                seconds(row[part]["seconds"]["matrix_exp"]["median"]),
                *(
                    text
                    for own in ("exp_skew", "layer")
                    for text in (
                        with_quartiles(row[part]["speedup"][own], digits=1),
                        with_quartiles(row[part]["share_of_limit"][own], digits=0, scale=100),
                    )
                ),
            ]
            for row in record["rows"]
        ]
        tables.append(Table(f"How fast is the exponential? {name}", header, rows, []))
    legend = [
        "Speedup: over torch.matrix_exp. Limit: the time of the bare matrix products of exp_skew.",
        "exp_skew: for the same matrices. layer: from positions and generators; if positions are multiples of",
        "each other, it needs fewer products and may exceed the limit.",
    ]
    return [tables[0], tables[1]._replace(legend=legend + rule(record))]


def _step(record: dict[str, Any]) -> list[Table]:
    def cell(row: dict[str, Any], part: str) -> str:
        if row["model"] == BASELINE:
            return f"1 = {seconds(row[part]['seconds']['median'])}"
        return with_quartiles(row[part]["ratio"])

    header = ["model", "train step / absolute", "inference / absolute"]
    tables = [
        Table(
            f"How much time does a position encoding add to ViT-S? {situation}",
            header,
            [[row["model"], cell(row, "train"), cell(row, "inference")] for row in rows],
            [],
        )
        for situation, rows in group_rows(record["rows"], "situation").items()
    ]
    legend = [
        "Train step: forward, loss, backward. Inference: rotations are cached from the previous call.",
        *rule(record),
        "none does less work than absolute, so its excess over 1 is noise: differences of that size mean nothing.",
    ]
    return [*tables[:-1], tables[-1]._replace(legend=legend + record["notes"]), *_placement(record)]


def _timm(record: dict[str, Any]) -> list[Table]:
    first, *others = record["rows"]
    parts = ("train", "inference")
    rows = [
        [first["model"], *(f"1 = {seconds(first[part]['seconds']['median'])}" for part in parts)],
        *([row["model"], *(with_quartiles(row[part]["ratio"]) for part in parts)] for row in others),
    ]
    header = ["model", "train step, to the original", "inference, to the original"]
    legend = ["Train step: forward, loss, backward. Inference: rotations are cached from the previous call."]
    title = f"What does converting {first['name']} cost? {first['situation']}"
    return [Table(title, header, rows, legend + rule(record) + record["notes"])]


def _placement(record: dict[str, Any]) -> list[Table]:
    rows = [row for row in record["rows"] if row.get("placement")]
    if not rows:
        return []
    header = ["situation", "model", "train step / absolute", "/ same model without placement"]
    cells = [
        [
            row["situation"],
            row["placement"]["of"],
            with_quartiles(row["train"]["ratio"]),
            with_quartiles(row["placement"]["ratio"]),
        ]
        for row in rows
    ]
    legend = [f"position_shift={rows[0]['placement']['shift']}, one draw per step. Inference does not use placement."]
    return [Table("How much time does random placement add to a train step?", header, cells, legend)]


def _memory(record: dict[str, Any]) -> list[Table]:
    def gigabytes(value: dict[str, Any]) -> str:
        return f"{value['median'] / 2**30:.2f} GB"

    def ratio(row: dict[str, Any]) -> str:
        return f"{row['ratio']['median']:.2f}" if row["rounds"] == 1 else with_quartiles(row["ratio"])

    tables = [
        Table(
            f"How much memory does a train step need? {situation}",
            ["model", "before", "peak", "peak / absolute"],
            [[row["model"], gigabytes(row["before_bytes"]), gigabytes(row["peak_bytes"]), ratio(row)] for row in rows],
            [],
        )
        for situation, rows in group_rows(record["rows"], "situation").items()
    ]
    legend = ["Each model in a fresh process. Before: memory before the first step."]
    return [*tables[:-1], tables[-1]._replace(legend=legend)]


def _scaling(record: dict[str, Any]) -> list[Table]:
    rows = [
        [
            row["varied"],
            str(row["value"]),
            seconds(row["absolute_seconds"]["median"]),
            with_quartiles(row["ratio"]),
        ]
        for row in record["rows"]
    ]
    header = ["varied", "value", "absolute", "LieRE / absolute"]
    legend = ["A train step of a transformer with 2 layers of ViT-S.", *rule(record)]
    return [Table("How does the cost of LieRE grow?", header, rows, legend)]


def _loading(record: dict[str, Any]) -> list[Table]:
    first, *others = record["rows"]
    rows = [
        [first["case"], f"1 = {seconds(first['seconds']['median'])}"],
        *([row["case"], with_quartiles(row["ratio"], digits=3)] for row in others),
    ]
    header = ["case", "batch / train step"]
    legend = [
        *record["notes"],
        "Ratio: time that loading adds to a step without workers. If it is below 1, one worker hides it.",
        *rule(record),
    ]
    return [Table("Does training wait for data?", header, rows, legend)]


def _points(record: dict[str, Any]) -> list[Table]:
    timed = [row for row in record["rows"] if "ratio" in row]
    weighed = [row for row in record["rows"] if "memory" in row]
    steps = [
        [
            row["model"],
            f"1 = {seconds(row['seconds']['median'])}" if row is timed[0] else with_quartiles(row["ratio"]),
            "" if row is timed[0] else with_quartiles(row["to_rope_mixed"]),
        ]
        for row in timed
    ]
    memory = [
        [row["model"], f"{row['used_bytes'] / 2**30:.2f} GB", f"{row['memory']['median']:.2f}"] for row in weighed
    ]
    header = ["model", "train step, to none", "to rope_mixed"]
    legend = [*record["notes"], *rule({**record, "rows": timed})]
    explained = [
        "One forward and backward pass of rope(q, k, positions), each in a fresh process. Tensors: queries, keys and",
        "their gradients.",
    ]
    table = Table(f"What do positions of each sample cost? {timed[0]['situation']}", header, steps, legend)
    if not weighed:
        return [table]
    title = f"And memory? {weighed[0]['situation']}"
    return [table, Table(title, ["model", "memory", "to the tensors"], memory, explained)]


def _training(record: dict[str, Any]) -> list[Table]:
    loops = [
        [
            row["encoding"],
            name,
            with_quartiles(found["examples_per_second"], digits=0),
            with_quartiles(found["ratio"], digits=3),
            with_quartiles(found["share_of_limit"], digits=0, scale=100),
        ]
        for row in record["rows"]
        for name, found in row["loops"].items()
    ]
    rows = record["rows"]
    shares = [
        [part, *(with_quartiles(row["shares"][part], digits=1, scale=100) for row in rows)]
        for part in rows[0]["shares"]
    ]
    shares.append(["not the model", *(with_quartiles(row["not_the_model"], digits=1, scale=100) for row in rows)])
    about_loops = [
        "The same model, examples and random draws; liere train without its start, validations and checkpoints. Limit:",
        "the speed of a large matrix product in the same rounds, for the multiply-adds of liere flops, three passes.",
        *rule(record)[:1],
    ]
    about_shares = [
        "Loop: Lightning's own, and the seed of each step. Start and end happen once per run. Not the model: all but",
        "forward, backward and optimizer step, as a share of the run without validations and checkpoints.",
        *record["notes"],
    ]
    header = ["encoding", "loop", "examples per second", "time / bare loop", "% of limit"]
    return [
        Table("How fast is training?", header, loops, about_loops),
        Table(
            "Where does the time of a run go? In percent",
            ["part", *(row["encoding"] for row in rows)],
            shares,
            about_shares,
        ),
    ]


TABLES: dict[str, Callable[[dict[str, Any]], list[Table]]] = {
    "rotations": _rotations,
    "step": _step,
    "timm": _timm,
    "memory": _memory,
    "scaling": _scaling,
    "loading": _loading,
    "points": _points,
    "training": _training,
    "gpu": gpu_tables,
}
