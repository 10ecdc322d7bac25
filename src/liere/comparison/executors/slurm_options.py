"""Options of sbatch, checked before anything is submitted."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from liere.errors import InputError

__all__ = ["check_options", "check_text", "check_time", "parse_minutes"]

OURS = ("array", "output", "error", "open-mode", "signal", "job-name", "nodes", "ntasks-per-node", "requeue")
"""Options of sbatch that cannot be changed, because requeuing or the report depends on them."""

FLAGS = {
    "partition": "--partition",
    "time": "--time",
    "account": "--account",
    "qos": "--qos",
    "cpus-per-task": "--cpus-per-run",
    "gpus-per-node": "--gpus-per-run",
}
"""Options of sbatch that have a flag of their own."""


def check_options(options: Mapping[str, Any]) -> None:
    """Raise `ValueError` unless options of sbatch are long names that nothing else sets, with values of one line."""
    for name, value in options.items():
        if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
            raise InputError(f"--slurm-option {name!r} is not a long option of sbatch, for example mem=32G")
        if name in OURS:
            raise InputError(f"--slurm-option {name} cannot be changed, because resuming depends on it: remove it")
        if name in FLAGS:
            raise InputError(f"--slurm-option {name} has a flag of its own: use {FLAGS[name]} instead")
        check_text(f"--slurm-option {name}", value)


def check_text(name: str, value: Any) -> None:
    """Raise `ValueError` if a value contains control characters: the script for sbatch has one line per option."""
    if not str(value).isprintable():
        raise InputError(f"{name} must not contain line breaks or control characters, got {value!r}: remove them")


def check_time(time: int | str, least: int) -> None:
    """Raise `ValueError` unless a time limit is longer than a number of seconds."""
    if 60 * parse_minutes(time) <= least:
        raise InputError(
            f"--time is {str(time)!r}, but jobs are asked to save {least} seconds before their time is over: "
            f"allow more than {least // 60} minutes"
        )


def parse_minutes(time: int | str) -> int:
    """Return a time limit in minutes, rounded up.

    Raises:
        ValueError: If it is not a time.

    Example:
        >>> parse_minutes(90), parse_minutes("90"), parse_minutes("4:00:00"), parse_minutes("1-12:00:00")
        (90, 90, 240, 2160)
    """
    match = re.fullmatch(r"(?:(?:(\d{1,4})-)?(\d{1,4}):([0-5]?\d):([0-5]?\d)|(\d{1,7}))", str(time))
    numbers = [int(part or 0) for part in match.groups()] if match else [0]
    minutes = numbers[-1] if len(numbers) == 1 or numbers[-1] else 0
    if len(numbers) > 1 and not minutes:
        days, hours, some, seconds, _ = numbers
        minutes = 24 * 60 * days + 60 * hours + some + math.ceil(seconds / 60)
    if minutes < 1:
        raise InputError(f"--time must be minutes or a time such as 4:00:00 or 2-00:00:00, got {str(time)!r}")
    return minutes
