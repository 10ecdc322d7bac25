"""Look up results of a comparison, and compare encodings across seeds."""

from __future__ import annotations

from typing import Any

from liere.evaluation.seeds import SIGNIFICANT, SeedComparison, SeedSpread, compare_seeds, seed_spread

__all__ = ["compare_at", "evaluation_at", "has_several_seeds", "is_ahead", "pair_at", "seed_values", "spread_at"]


def evaluation_at(row: dict[str, Any], size: int) -> dict[str, Any] | None:
    """Return an encoding's evaluation at an image size, or None."""
    return next((found for found in row["evaluations"] if found["size"] == size), None)


def has_several_seeds(comparison: dict[str, Any]) -> bool:
    """Return whether any encoding was trained with more than one seed."""
    return any(len(row["seeds"]) > 1 for row in comparison["encodings"])


def seed_values(row: dict[str, Any], size: int) -> dict[int, float]:
    """Return the accuracy of each seed of an encoding at an image size; empty if it was not tested at that size."""
    found = evaluation_at(row, size)
    return dict(zip(row["seeds"], found["by_seed"], strict=True)) if found else {}


def spread_at(row: dict[str, Any], size: int) -> SeedSpread | None:
    """Return mean, range and interval over an encoding's seeds at an image size; None if it was not tested there."""
    values = seed_values(row, size)
    return seed_spread(list(values.values())) if values else None


def compare_at(comparison: dict[str, Any], size: int, first: str, second: str) -> SeedComparison | None:
    """Return how two encodings compare across seeds at an image size; None if there are too few seeds."""
    rows = {row["encoding"]: row for row in comparison["encodings"]}
    if first not in rows or second not in rows:
        return None
    return compare_seeds(seed_values(rows[first], size), seed_values(rows[second], size))


def pair_at(comparison: dict[str, Any], size: int, first: str, second: str) -> dict[str, Any] | None:
    """Return the test over examples between two encodings at an image size, in either order, or None."""
    names = {first, second}
    pairs = comparison["pairs"]
    return next((pair for pair in pairs if pair["size"] == size and {pair["first"], pair["second"]} == names), None)


def is_ahead(comparison: dict[str, Any], size: int, first: str, second: str) -> bool:
    """Return whether the first of two encodings is clearly ahead at an image size.

    It has to be ahead in every seed, in the test over seeds and in the one over test examples. The last two may differ
    in sign between encodings with different seeds, because only common ones are compared over seeds.
    """
    over_seeds, pair = compare_at(comparison, size, first, second), pair_at(comparison, size, first, second)
    if over_seeds is None or pair is None or pair["p"] >= SIGNIFICANT:
        return False
    difference = pair["difference"] if pair["first"] == first else -pair["difference"]
    return over_seeds.verdict == 1 and difference > 0
