"""Accuracy drop after shuffling patches or frames."""

from __future__ import annotations

import math
from typing import Any

from liere.evaluation.drops import drop_difference, relative_drop
from liere.evaluation.seeds import compare_seeds
from liere.report.drawing import Drawing
from liere.report.table_cells import NOTHING, Cell, Column, Table
from liere.reproduce.claims import judge
from liere.reproduce.measured import Measured
from liere.reproduce.outcome import Claim, Outcome, number, printed
from liere.reproduce.outcome_charts import draw_columns
from liere.reproduce.paper_numbers import SHUFFLING
from liere.reproduce.results import Found, Results, pair, shared
from liere.reproduce.row_labels import label, paper_row
from liere.reproduce.tables.paper_layout import interval_note
from liere.reproduce.wanted_runs import Key
from liere.runs.conditions import Condition

__all__ = ["build_shuffling"]


def build_shuffling(results: Results) -> Outcome:
    """Return tables of accuracy before and after shuffling, one per data set and kind of shuffling."""
    tables, claims, numbers, notes = [], [], dict[str, Any](), [interval_note(results)]
    drops: dict[str, dict[str, Measured]] = {}
    for data in results.data:
        for what in ("patches", "frames"):
            column = f"{data}, {what}"
            table, drops_here, found = _table(results, data, what, notes)
            if found:
                tables.append(table)
                drops[column] = drops_here
                claims.append(_claim(column, drops_here, found))
                numbers[column] = {name: drop.as_dict() for name, drop in drops_here.items()}
    figure: dict[str, Drawing] = {}
    if drops:
        figure["Relative drop"] = draw_columns(
            "Relative drop after shuffling, %",
            results.experiment.encodings,
            list(drops),
            lambda encoding, column: drops[column].get(encoding),
            ordered=False,
        )
    return Outcome(tables, claims, figure, {"drop": numbers}, list(dict.fromkeys(notes)))


def _table(
    results: Results, data: str, what: str, notes: list[str]
) -> tuple[Table, dict[str, Measured], dict[str, tuple[Found, Found]]]:
    known = SHUFFLING.get(results.paper_data(data), {}) if what == "patches" else {}
    encodings = results.encodings(data)
    rows, drops, found = [], dict[str, Measured](), dict[str, tuple[Found, Found]]()
    for encoding in encodings:
        key = Key(data, "", encoding)
        side = results.condition(key).size
        before, after = results.found(key), results.found(key, Condition(side, shuffle=what))
        paper = known.get(paper_row(encoding, encodings) or "")
        if before is None or after is None:
            continue
        found[encoding] = (before, after)
        if before.accuracy.value > 0:
            drops[encoding] = Measured(relative_drop(*pair(before, after)), _by_seed(before, after), least=-math.inf)
        rows.append([Cell(label(encoding)), number(before.accuracy), number(after.accuracy)])
        rows[-1].append(number(drops.get(encoding)))
        rows[-1] += [Cell(f"{paper[0]:.1f}"), Cell(f"{paper[1]:.1f}"), printed(paper[2])] if paper else [NOTHING] * 3
        if paper and paper[2].slip:
            notes.append(f"* {label(encoding)}, {data}: error in the paper; {paper[2].slip}.")
    columns = [Column("encoding", numeric=False)]
    columns += [Column(name, who) for who in ("ours", "paper") for name in ("before", "after", "drop")]
    return Table(f"{data}: shuffled {what}, %", columns, rows), drops, found


def _claim(column: str, drops: dict[str, Measured], found: dict[str, tuple[Found, Found]]) -> Claim:
    """Return a verdict on whether LieRE drops most, comparing the two largest drops over seeds and test examples."""
    text = f"{column}: LieRE drops most after shuffling, so it relies most on positions"
    lieres = [name for name in drops if name.startswith("liere")]
    others = [name for name in drops if not name.startswith("liere")]
    if not lieres or not others:
        return Claim(text, "is not decided", "not run, or accuracy is zero")
    first, second = (max(names, key=lambda name: drops[name].value) for names in (lieres, others))
    one, one_after, other, other_after = shared(*found[first], *found[second])
    difference = drop_difference(pair(one, one_after), pair(other, other_after))
    by_seed = (one.named(_by_seed(one, one_after)), other.named(_by_seed(other, other_after)))
    direction = (difference.low > 0) - (difference.high < 0)
    evidence = (
        f"{label(first)} {100 * drops[first].value:.1f} %, {label(second)} {100 * drops[second].value:.1f} %, "
        f"difference {100 * difference.low:+.1f} to {100 * difference.high:+.1f} over test examples"
    )
    return judge(text, compare_seeds(*by_seed), direction, evidence)


def _by_seed(before: Found, after: Found) -> list[float]:
    """Return the drop of each seed, on the examples that all seeds have before and after."""
    before, after = shared(before, after)
    return [1 - last / first if first else 0.0 for first, last in zip(before.by_seed, after.by_seed, strict=True)]
