"""Short facts about a comparison: its size, its data, the machine and the software versions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["comparison_setup", "machine_and_versions"]


def comparison_setup(comparison: dict[str, Any]) -> dict[str, str]:
    """Return short facts about what was compared, as label and value."""
    rows = comparison["encodings"]
    facts = {
        "encodings": str(len(rows)),
        "seeds per encoding": _range(len(row["seeds"]) for row in rows),
        "training examples": _range(row["examples"] for row in rows),
        "test examples": _range(found["examples"] for row in rows for found in row["evaluations"]),
        "trained at": f"{comparison['train_size']} px",
        "tested at": ", ".join(map(str, comparison["sizes"])) + " px" if comparison["sizes"] else "",
    }
    return {name: value for name, value in facts.items() if value}


def machine_and_versions(comparison: dict[str, Any]) -> dict[str, str]:
    """Return the known facts about the machine and the software versions, as label and value."""
    facts = {name.replace("_gb", ", GB"): value for name, value in comparison["machine"].items()}
    return {name: str(value) for name, value in (facts | comparison["versions"]).items() if value is not None}


def _range(numbers: Iterable[int]) -> str:
    """Return the common value, or the smallest and the largest."""
    found = sorted(set(numbers))
    return " to ".join(f"{number:,}" for number in dict.fromkeys((found[0], found[-1]))) if found else ""
