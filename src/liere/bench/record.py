"""What is written of a question: its rows, and all that a reader needs to judge them."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from liere import __version__
from liere.bench.race import Watch, watch_nothing

__all__ = [
    "Answer",
    "Settings",
    "group_rows",
    "machine",
    "make_record",
    "prepare_folder",
    "system_load",
    "versions",
    "write_record",
]

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


def make_record(question: str, answer: Answer, *, quick: bool, load: float | None = None) -> dict[str, Any]:
    """Return the answer with what it was found on.

    Args:
        question: Its name.
        answer: What was found.
        quick: Whether sizes were small and rounds few.
        load: How many processes others kept busy before the first measurement, as far as it is known.
    """
    return {
        "command": f"liere bench {question}" + (" --quick" if quick else ""),
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
    path.write_text(json.dumps(record, indent=1) + "\n")
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


def prepare_folder(folder: Path) -> None:
    """Make a folder and make sure that files can be written to it, before hours are spent.

    Raises:
        OSError: If that is not so.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise OSError(f"--output {folder} cannot be written to ({error.strerror}): choose another folder") from None


def machine() -> dict[str, Any]:
    """Return what this machine is, and how much of it torch uses."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory_gb": _memory_gb(),
        "system": platform.platform(),
    }


def system_load() -> float | None:
    """Return how many processes were busy in the last minute; None where the system does not tell."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def versions(packages: Sequence[str] = ("torch", "timm")) -> dict[str, str | None]:
    """Return the versions of Python, liere and packages; None for one that is not installed."""
    found: dict[str, str | None] = {"python": platform.python_version(), "liere": __version__}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        return None
