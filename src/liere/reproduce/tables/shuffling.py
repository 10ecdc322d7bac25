"""How much accuracy is lost when patches or frames are shuffled."""

from __future__ import annotations

from typing import Any

from liere.evaluation.conditions import Condition
from liere.evaluation.paper_numbers import SHUFFLING
from liere.evaluation.report.cells import Cell, Column, Table
from liere.evaluation.report.figures import Drawing
from liere.evaluation.statistics import Interval, relative_drop
from liere.reproduce.figures import draw_columns
from liere.reproduce.names import label, paper_row
from liere.reproduce.outcome import NOTHING, Claim, Outcome, number, printed
from liere.reproduce.plan import Key
from liere.reproduce.results import Results

__all__ = ["build_shuffling"]


def build_shuffling(results: Results) -> Outcome:
    """Tables of accuracy before and after shuffling, one a data set and kind of shuffling."""
    tables, claims, numbers, notes = [], [], dict[str, Any](), list[str]()
    drops: dict[str, dict[str, Interval]] = {}
    for data in results.data:
        for what in ("patches", "frames"):
            column = f"{data}, {what}"
            table, found = _table(results, data, what, notes)
            if found:
                tables.append(table)
                drops[column] = found
                claims.append(_claim(column, found))
                numbers[column] = {name: drop.as_dict() for name, drop in found.items()}
    figure: dict[str, Drawing] = {}
    if drops:
        figure["Relative drop"] = draw_columns(
            "Relative drop after shuffling, %",
            results.experiment.encodings,
            list(drops),
            lambda encoding, column: drops[column].get(encoding),
        )
    return Outcome(tables, claims, figure, {"drop": numbers}, list(dict.fromkeys(notes)))


def _table(results: Results, data: str, what: str, notes: list[str]) -> tuple[Table, dict[str, Interval]]:
    known = SHUFFLING.get(results.paper_data(data), {})
    encodings = results.encodings(data)
    rows, drops = [], {}
    for encoding in encodings:
        key = Key(data, "", encoding)
        side = results.condition(key).size
        before, after = results.found(key), results.found(key, Condition(side, shuffle=what))
        paper = known.get(paper_row(encoding, encodings) or "")
        if before is None or after is None:
            continue
        drops[encoding] = drop = relative_drop(before.correct, after.correct)
        rows.append([Cell(label(encoding)), number(before.accuracy), number(after.accuracy), number(drop)])
        rows[-1] += [Cell(f"{paper[0]:.1f}"), Cell(f"{paper[1]:.1f}"), printed(paper[2])] if paper else [NOTHING] * 3
        if paper and paper[2].slip:
            notes.append(f"* {label(encoding)}, {data}: a slip of the paper; {paper[2].slip}.")
    columns = [Column("encoding", numeric=False)]
    columns += [Column(name, who) for who in ("ours", "paper") for name in ("before", "after", "drop")]
    return Table(f"{data}: shuffled {what}, %", columns, rows), drops


def _claim(column: str, drops: dict[str, Interval]) -> Claim:
    """Judge whether LieRE loses most, by whether intervals of the drops overlap."""
    text = f"{column}: LieRE loses most by shuffling, so it uses positions most"
    lieres = {name: drop for name, drop in drops.items() if name.startswith("liere")}
    others = {name: drop for name, drop in drops.items() if not name.startswith("liere")}
    if not lieres or not others:
        return Claim(text, "is not decided", "not run")
    first = max(lieres, key=lambda name: lieres[name].value)
    second = max(others, key=lambda name: others[name].value)
    one, other = lieres[first], others[second]
    evidence = f"{label(first)} {100 * one.value:.1f} %, {label(second)} {100 * other.value:.1f} %"
    if one.low > other.high:
        return Claim(text, "holds", evidence)
    if one.high < other.low:
        return Claim(text, "does not hold", evidence)
    return Claim(text, "is not decided", f"{evidence}, intervals overlap")
