"""Benchmark records: the measured rows, and the circumstances that a reader needs to judge them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from liere.bench.devices import device_name
from liere.bench.race import Watch, watch_nothing
from liere.files.writing import write_atomically
from liere.machine import machine, versions

__all__ = ["Answer", "Settings", "group_rows", "make_record", "system_load", "write_record"]

Row = dict[str, Any]
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Settings:
    """Settings of a benchmark.

    Attributes:
        quick: Whether to use small sizes and few rounds.
        rounds: Number of rounds of every race; None for the default of the question.
        watch: Progress callback.
        device: Device that does the work.
    """

    quick: bool = False
    rounds: int | None = None
    watch: Watch = watch_nothing
    device: torch.device = CPU

    def choose_rounds(self, full: int, quick: int) -> int:
        """Return the requested number of rounds, or else the default for a full or quick run."""
        if self.rounds is not None:
            return self.rounds
        return quick if self.quick else full


@dataclass(frozen=True)
class Answer:
    """The answer to a question.

    Attributes:
        rounds: Number of rounds; a row may have its own number.
        rows: One per case, as data for JSON.
        notes: Additional remarks for the reader.
    """

    rounds: int
    rows: list[Row]
    notes: list[str] = field(default_factory=list)


def make_record(
    question: str,
    answer: Answer,
    *,
    quick: bool,
    load: float | None = None,
    arguments: str | None = None,
    device: torch.device = CPU,
) -> dict[str, Any]:
    """Return the answer together with the command, date, machine and versions.

    Args:
        question: Name of the question.
        answer: The answer to it.
        quick: Whether it was a quick run with small sizes and few rounds.
        load: System load before the first measurement, if known.
        arguments: What follows `liere bench` on the command line, if it is more than the name of the question.
        device: Device that did the work.
    """
    elsewhere = "" if device.type == "cpu" else f" --device {device}"
    return {
        "command": f"liere bench {arguments or question}" + (" --quick" if quick else "") + elsewhere,
        "question": question,
        "quick": quick,
        "rounds": answer.rounds,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine() | {"load_before": load, "device": device_name(device)},
        "versions": versions(),
        "notes": answer.notes,
        "rows": answer.rows,
    }


def write_record(record: dict[str, Any], folder: Path) -> Path:
    """Write a record to `bench_<question>.json` in the folder, and return the file."""
    path = folder / f"bench_{record['question']}.json"
    write_atomically(path, json.dumps(record, indent=1) + "\n")
    return path


def group_rows(rows: list[Row], key: str) -> dict[str, list[Row]]:
    """Return rows grouped by their value for a key, in order of first occurrence.

    Example:
        >>> group_rows([{"a": "x", "n": 1}, {"a": "y", "n": 2}, {"a": "x", "n": 3}], "a")["x"]
        [{'a': 'x', 'n': 1}, {'a': 'x', 'n': 3}]
    """
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return groups


def system_load() -> float | None:
    """Return the average number of busy processes in the last minute; None if the system does not report it."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
