"""What the seeds of a comparison say, computed from the accuracy of each seed."""

from __future__ import annotations

from typing import Any

from liere.evaluation.seeds import SIGNIFICANT, SeedComparison, SeedSpread, compare_seeds, seed_spread

__all__ = ["compare_at", "evaluation_at", "has_several_seeds", "is_decided", "pair_at", "seed_values", "spread_at"]


def evaluation_at(row: dict[str, Any], size: int) -> dict[str, Any] | None:
    """Return an encoding's evaluation at a size, if it has one."""
    return next((found for found in row["evaluations"] if found["size"] == size), None)


def has_several_seeds(comparison: dict[str, Any]) -> bool:
    """Return whether any encoding was trained with more than one seed."""
    return any(len(row["seeds"]) > 1 for row in comparison["encodings"])


def seed_values(row: dict[str, Any], size: int) -> dict[int, float]:
    """Return the accuracy of each seed of an encoding at a size; nothing where it was not tested so."""
    found = evaluation_at(row, size)
    return dict(zip(row["seeds"], found["by_seed"], strict=True)) if found else {}


def spread_at(row: dict[str, Any], size: int) -> SeedSpread | None:
    """Return mean, range and interval over an encoding's seeds at a size, if it was tested so."""
    values = seed_values(row, size)
    return seed_spread(list(values.values())) if values else None


def compare_at(comparison: dict[str, Any], size: int, first: str, second: str) -> SeedComparison | None:
    """Return how two encodings compare over seeds at a size; None where there are too few seeds."""
    rows = {row["encoding"]: row for row in comparison["encodings"]}
    if first not in rows or second not in rows:
        return None
    return compare_seeds(seed_values(rows[first], size), seed_values(rows[second], size))


def pair_at(comparison: dict[str, Any], size: int, first: str, second: str) -> dict[str, Any] | None:
    """Return what was tested over the examples of two encodings at a size, in whichever order, if it was."""
    names = {first, second}
    pairs = comparison["pairs"]
    return next((pair for pair in pairs if pair["size"] == size and {pair["first"], pair["second"]} == names), None)


def is_decided(over_seeds: SeedComparison | None, p_over_examples: float | None) -> bool:
    """Return whether one encoding is clearly ahead: every seed and the test over seeds say so, and examples agree.

    Args:
        over_seeds: The comparison over seeds; None where there are too few, which decides nothing.
        p_over_examples: p-value over test examples; None where that was not tested.
    """
    if over_seeds is None or over_seeds.verdict == 0:
        return False
    return p_over_examples is None or p_over_examples < SIGNIFICANT
