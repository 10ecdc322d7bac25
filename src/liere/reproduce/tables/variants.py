"""Accuracy where one thing is varied: size of the model, share of the data, pooling."""

from __future__ import annotations

from collections.abc import Callable

from liere.reproduce.claims import compare, is_best
from liere.reproduce.measured import Measured
from liere.reproduce.outcome import Claim, Outcome
from liere.reproduce.outcome_charts import draw_columns
from liere.reproduce.paper_numbers import SIZE, Printed
from liere.reproduce.results import Found, Results
from liere.reproduce.row_labels import label
from liere.reproduce.tables.grid import grid_numbers, grid_table, interval_note, slips
from liere.reproduce.wanted_runs import Key

__all__ = ["build_fraction", "build_pooling", "build_size"]


def build_size(results: Results) -> Outcome:
    """Table and figure of model sizes."""

    def paper(row: str, variant: str) -> Printed | None:
        return SIZE.get(row, {}).get(variant)

    def claims(found: Callable[[str, str], Found | None]) -> list[Claim]:
        return [
            is_best(f"{size}: LieRE₈ is the most accurate", "liere8", {e: found(e, size) for e in encodings})
            for size in results.variants
        ]

    encodings = results.experiment.encodings
    return _build(results, "Accuracy by model size, %", paper, claims)


def build_fraction(results: Results) -> Outcome:
    """Figure of training on a share of the data."""

    def claims(found: Callable[[str, str], Found | None]) -> list[Claim]:
        shares = [variant for variant in results.variants if variant != "100 %"]
        return [
            _everywhere(name, base, shares, found)
            for name in ("rope_mixed", "liere8", "liere")
            for base in ("absolute:init_std=1", "absolute", "visionllama")
            if {name, base} <= set(results.experiment.encodings)
        ]

    return _build(results, "Accuracy by share of the training examples, %", lambda row, variant: None, claims)


def build_pooling(results: Results) -> Outcome:
    """Mean pooling, of which the paper says that it is better, without numbers."""

    def claims(found: Callable[[str, str], Found | None]) -> list[Claim]:
        return [
            compare(f"{label(name)}: mean pooling is better than a CLS token", found(name, "mean"), found(name, "CLS"))
            for name in results.experiment.encodings
        ]

    return _build(results, "Accuracy by pooling, %", lambda row, variant: None, claims)


def _everywhere(name: str, base: str, shares: list[str], found: Callable[[str, str], Found | None]) -> Claim:
    """Judge whether one beats another at every share of the data."""
    each = [compare(share, found(name, share), found(base, share)) for share in shares]
    verdicts = [claim.verdict for claim in each]
    text = f"{label(name)} beats {label(base)} at every share of the data below all"
    evidence = f"at {verdicts.count('holds')} of {len(shares)}; no correction for their number"
    if all(verdict == "holds" for verdict in verdicts):
        return Claim(text, "holds", evidence)
    return Claim(text, "does not hold" if "does not hold" in verdicts else "is not decided", evidence)


def _build(
    results: Results,
    title: str,
    paper: Callable[[str, str], Printed | None],
    claims: Callable[[Callable[[str, str], Found | None]], list[Claim]],
) -> Outcome:
    (data,) = results.data
    encodings, variants = results.experiment.encodings, results.variants

    def found(encoding: str, variant: str) -> Found | None:
        return results.found(Key(data, variant, encoding))

    def ours(encoding: str, variant: str) -> Measured | None:
        one = found(encoding, variant)
        return one.accuracy if one else None

    return Outcome(
        [grid_table(title, encodings, variants, ours, paper)],
        claims(found),
        {"Accuracy": draw_columns(f"{title.removesuffix(', %')} ({data}), %", encodings, variants, ours)},
        {"data": data, "accuracy": grid_numbers(encodings, variants, ours)},
        [interval_note(results), *slips(encodings, variants, paper)],
    )
