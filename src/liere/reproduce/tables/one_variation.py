"""Tables of accuracy on one data set with one setting varied."""

from __future__ import annotations

from collections.abc import Callable

from liere.reproduce.measured import Measured
from liere.reproduce.outcome import Claim, Outcome
from liere.reproduce.outcome_charts import draw_columns
from liere.reproduce.paper_numbers import Printed
from liere.reproduce.results import Found, Results
from liere.reproduce.tables.paper_layout import grid_numbers, grid_table, interval_note, slips
from liere.reproduce.wanted_runs import Key

__all__ = ["build_variation"]


def build_variation(
    results: Results,
    title: str,
    paper: Callable[[str, str], Printed | None],
    claims: Callable[[Callable[[str, str], Found | None]], list[Claim]],
) -> Outcome:
    """Return the table and figure of accuracies on one data set, with one column per variation.

    Args:
        results: The results.
        title: Title of the table.
        paper: Returns the paper's number for a row of the paper and a variation.
        claims: Returns the verdicts, given a function that looks up the result of an encoding and a variation.
    """
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
