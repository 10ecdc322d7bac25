"""Accuracy by fraction of the training examples."""

from __future__ import annotations

from collections.abc import Callable

from liere.reproduce.claims import compare
from liere.reproduce.outcome import Claim, Outcome
from liere.reproduce.results import Found, Results
from liere.reproduce.row_labels import label
from liere.reproduce.tables.one_variation import build_variation

__all__ = ["build_fraction"]


def build_fraction(results: Results) -> Outcome:
    """Return the table and figure of accuracy by fraction of the training examples."""

    def claims(found: Callable[[str, str], Found | None]) -> list[Claim]:
        shares = [variant for variant in results.variants if variant != "100 %"]
        return [
            _everywhere(name, base, shares, found)
            for name in ("rope_mixed", "liere8", "liere")
            for base in ("absolute:init_std=1", "absolute", "visionllama")
            if {name, base} <= set(results.experiment.encodings)
        ]

    return build_variation(
        results, "Accuracy by fraction of the training examples, %", lambda row, variant: None, claims
    )


def _everywhere(name: str, base: str, shares: list[str], found: Callable[[str, str], Found | None]) -> Claim:
    """Return a verdict on whether one encoding beats another at every fraction of the data."""
    each = [compare(share, found(name, share), found(base, share)) for share in shares]
    verdicts = [claim.verdict for claim in each]
    text = f"{label(name)} beats {label(base)} at every fraction of the data below 100 %"
    evidence = f"at {verdicts.count('holds')} of {len(shares)} fractions; not corrected for multiple tests"
    if all(verdict == "holds" for verdict in verdicts):
        return Claim(text, "holds", evidence)
    return Claim(text, "does not hold" if "does not hold" in verdicts else "is not decided", evidence)
