"""What is written of a question: its rows, and all that a reader needs to judge them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from liere.bench.race import Watch, watch_nothing
from liere.files.writing import write_atomically
from liere.machine import machine, versions

__all__ = ["Answer", "Settings", "group_rows", "make_record", "system_load", "write_record"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """How a question is asked.

    Attributes:
        quick: Whether small sizes and few rounds will do.
        rounds: Rounds of every race; None for those of the question.
        watch: Told of progress.
    """

    quick: bool = False
    rounds: int | None = None
    watch: Watch = watch_nothing

    def choose_rounds(self, full: int, quick: int) -> int:
        """Return the rounds that were asked for, or else one of the two numbers."""
        if self.rounds is not None:
            return self.rounds
        return quick if self.quick else full


@dataclass(frozen=True)
class Answer:
    """What a question found.

    Attributes:
        rounds: Rounds of its races; a row may have a number of its own.
        rows: One a case, as JSON holds it.
        notes: What a reader has to know besides.
    """

    rounds: int
    rows: list[Row]
    notes: list[str] = field(default_factory=list)


def make_record(
    question: str, answer: Answer, *, quick: bool, load: float | None = None, arguments: str | None = None
) -> dict[str, Any]:
    """Return the answer with what it was found on.

    Args:
        question: Its name.
        answer: What was found.
        quick: Whether sizes were small and rounds few.
        load: How many processes others kept busy before the first measurement, as far as it is known.
        arguments: What follows `liere bench` on the command line, if it is not the name of the question.
    """
    return {
        "command": f"liere bench {arguments or question}" + (" --quick" if quick else ""),
        "question": question,
        "quick": quick,
        "rounds": answer.rounds,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine() | {"load_before": load},
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
    """Return rows by the value that they have for a key, in the order in which values occur.

    Example:
        >>> group_rows([{"a": "x", "n": 1}, {"a": "y", "n": 2}, {"a": "x", "n": 3}], "a")["x"]
        [{'a': 'x', 'n': 1}, {'a': 'x', 'n': 3}]
    """
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return groups


def system_load() -> float | None:
    """Return how many processes were busy in the last minute; None where the system does not tell."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
