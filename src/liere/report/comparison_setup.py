"""The setup of a comparison, in a few words each: what was compared, on what, and with which machine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["comparison_setup", "machine_and_versions"]


def comparison_setup(comparison: dict[str, Any]) -> dict[str, str]:
    """Return what was compared, and on what."""
    rows = comparison["encodings"]
    facts = {
        "encodings": str(len(rows)),
        "seeds each": _range(len(row["seeds"]) for row in rows),
        "training examples": _range(row["examples"] for row in rows),
        "test examples": _range(found["examples"] for row in rows for found in row["evaluations"]),
        "trained at": f"{comparison['train_size']} px",
        "tested at": ", ".join(map(str, comparison["sizes"])) + " px" if comparison["sizes"] else "",
    }
    return {name: value for name, value in facts.items() if value}


def machine_and_versions(comparison: dict[str, Any]) -> dict[str, str]:
    """Return the machine and the versions of the software; what is not known is left out."""
    facts = {name.replace("_gb", ", GB"): value for name, value in comparison["machine"].items()}
    return {name: str(value) for name, value in (facts | comparison["versions"]).items() if value is not None}


def _range(numbers: Iterable[int]) -> str:
    """Return the number that all share, or the least and the greatest."""
    found = sorted(set(numbers))
    return " to ".join(f"{number:,}" for number in dict.fromkeys((found[0], found[-1]))) if found else ""
