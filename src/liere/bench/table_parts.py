"""What the tables of all questions are made of: titles, times, medians with quartiles."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Table", "rule", "seconds", "with_quartiles"]


class Table(NamedTuple):
    """A table with its title and legend."""

    title: str
    header: list[str]
    rows: list[list[str]]
    legend: list[str]


def seconds(value: float) -> str:
    """Return a time in readable units.

    Example:
        >>> seconds(0.0123), seconds(3.456), seconds(-0.0004)
        ('12.3 ms', '3.46 s', '-0.4 ms')
    """
    return f"{value:.2f} s" if abs(value) >= 1 else f"{1000 * value:.1f} ms"


def with_quartiles(found: dict[str, Any], *, digits: int = 2, scale: float = 1.0) -> str:
    """Return a median with its quartiles as text.

    Example:
        >>> with_quartiles({"median": 1.07, "quartiles": [0.947, 1.116]})
        '1.07 [0.95-1.12]'
    """
    low, median, high = (scale * value for value in (found["quartiles"][0], found["median"], found["quartiles"][1]))
    return f"{median:.{digits}f} [{low:.{digits}f}-{high:.{digits}f}]"


def rule(record: dict[str, Any]) -> list[str]:
    """Return the part of the legend that all tables of times share."""
    rounds = sorted({row.get("rounds", record["rounds"]) for row in record["rows"]})
    spread = f"median [quartiles] over {' or '.join(map(str, rounds))} rounds"
    return [
        f"Ratios are taken within a round, in which all candidates take turns: {spread}.",
        "Absolute times are given for the baseline only: median times mix slow and fast rounds and can contradict the",
        "ratios. The JSON file has all times.",
    ]
