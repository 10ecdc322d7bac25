"""Accuracy with mean pooling and with a CLS token."""

from __future__ import annotations

from collections.abc import Callable

from liere.reproduce.claims import compare
from liere.reproduce.outcome import Claim, Outcome
from liere.reproduce.results import Found, Results
from liere.reproduce.row_labels import label
from liere.reproduce.tables.one_variation import build_variation

__all__ = ["build_pooling"]


def build_pooling(results: Results) -> Outcome:
    """Return the table and figure of mean pooling, which the paper calls better without giving numbers."""

    def claims(found: Callable[[str, str], Found | None]) -> list[Claim]:
        return [
            compare(f"{label(name)}: mean pooling is better than a CLS token", found(name, "mean"), found(name, "CLS"))
            for name in results.experiment.encodings
        ]

    return build_variation(results, "Accuracy by pooling, %", lambda row, variant: None, claims)
