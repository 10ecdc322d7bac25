"""What `results/` holds: files, and single numbers of them by a path."""

from __future__ import annotations

import json
import re
import statistics
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["RESULTS", "look_up", "numbers_of", "show"]

RESULTS = Path(__file__).parents[2] / "results"
STEP = re.compile(r"\.?([^.\[\]]+)|\[([^\]]*)\]")
SUMMARIES = {"min": min, "max": max, "mean": statistics.fmean, "median": statistics.median, "len": len, "sum": sum}


@cache
def numbers_of(file: str) -> dict[str, Any]:
    """Return the content of a JSON file of `results/`."""
    content: dict[str, Any] = json.loads((RESULTS / file).read_text())
    return content


def look_up(content: Any, path: str) -> Any:
    """Return what is at a path: names and numbers with dots, `[name=value,...]` for the one element that has these.

    `min`, `max`, `mean`, `median`, `sum` and `len` at the end summarize a list, or the values of a mapping.

    Raises:
        LookupError: If there is nothing there, or several elements fit.

    Example:
        >>> content = {"rows": [{"size": 108, "by_seed": [0.5, 0.7]}, {"size": 276, "by_seed": [0.4]}]}
        >>> look_up(content, "rows[size=108].by_seed.max"), look_up(content, "rows.1.by_seed.0")
        (0.7, 0.4)
    """
    for name, condition in STEP.findall(path):
        content = _matching(content, condition, path) if condition else _inner(content, name, path)
    return content


def show(value: Any, style: str = "") -> str:
    """Return a number as text: `%` for percent, `%.0` for whole percent, `.2f` and `,.0f` as in Python.

    Example:
        >>> show(0.9857, "%"), show(0.9857, "%.0"), show(12345.6, ",.0f"), show(7)
        ('98.6\\xa0%', '99\\xa0%', '12,346', '7')
    """
    if style.startswith("%"):
        return f"{100 * value:{style[1:] or '.1'}f}\N{NO-BREAK SPACE}%"
    return f"{value:{style}}"


def _matching(rows: list[Any], conditions: str, path: str) -> Any:
    wanted = [text.partition("=")[::2] for text in re.split(r",(?=\w+=)", conditions)]
    found = [row for row in rows if all(str(row.get(name)) == value for name, value in wanted)]
    if len(found) != 1:
        raise LookupError(f"{path}: {len(found)} elements have {conditions}")
    return found[0]


def _inner(content: Any, name: str, path: str) -> Any:
    if isinstance(content, dict) and name in content:
        return content[name]
    if isinstance(content, list) and name.isdigit() and int(name) < len(content):
        return content[int(name)]
    if name in SUMMARIES and isinstance(content, dict | list):
        return SUMMARIES[name](content.values() if isinstance(content, dict) else content)  # type: ignore[operator]
    raise LookupError(f"{path}: there is no {name}")
