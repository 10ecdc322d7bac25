"""Accuracy by model size."""

from __future__ import annotations

from collections.abc import Callable

from liere.reproduce.claims import is_best
from liere.reproduce.outcome import Claim, Outcome
from liere.reproduce.paper_numbers import SIZE, Printed
from liere.reproduce.results import Found, Results
from liere.reproduce.tables.one_variation import build_variation

__all__ = ["build_size"]


def build_size(results: Results) -> Outcome:
    """Return the table and figure of model sizes."""

    def paper(row: str, variant: str) -> Printed | None:
        return SIZE.get(row, {}).get(variant)

    def claims(found: Callable[[str, str], Found | None]) -> list[Claim]:
        return [
            is_best(f"{size}: LieRE₈ is the most accurate", "liere8", {e: found(e, size) for e in encodings})
            for size in results.variants
        ]

    encodings = results.experiment.encodings
    return build_variation(results, "Accuracy by model size, %", paper, claims)
