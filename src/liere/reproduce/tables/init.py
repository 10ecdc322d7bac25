"""Generators that start large or small: a paired z-test."""

from __future__ import annotations

from liere.evaluation.paper_numbers import INIT
from liere.evaluation.report.cells import Cell, Column, Table
from liere.evaluation.statistics import paired_z_test
from liere.reproduce.names import label
from liere.reproduce.outcome import NOTHING, Claim, Outcome, number
from liere.reproduce.plan import Key
from liere.reproduce.results import Results

__all__ = ["build_init"]

LARGE, SMALL = "2 pi", "1"
METRICS = ("Z-statistic", "P-value", "Difference between means", "95 % confidence interval")


def build_init(results: Results) -> Outcome:
    """Table of initialisations: [0, 2 pi) against [0, 1), as the paper prints it."""
    (data,) = results.data
    encodings = results.experiment.encodings
    columns = [Column("metric", numeric=False)]
    cells: list[list[Cell]] = []
    numbers, gains = {}, {}
    for encoding in encodings:
        columns += [Column("ours", label(encoding)), Column("paper", label(encoding))]
        large, small = (results.found(Key(data, variant, encoding)) for variant in (LARGE, SMALL))
        paper = INIT.get(encoding)
        cells.append(_column(paper))
        if large is None or small is None:
            cells.insert(-1, [NOTHING] * len(METRICS))
            continue
        test = paired_z_test(large.correct, small.correct)
        ours = vars(test)
        cells.insert(-1, _column(ours))
        numbers[encoding] = ours | {LARGE: large.accuracy.as_dict(), SMALL: small.accuracy.as_dict()}
        gains[encoding] = abs(test.difference)
    rows = [[Cell(metric), *(column[place] for column in cells)] for place, metric in enumerate(METRICS)]
    return Outcome(
        [Table(f"2 pi against 1, paired z-test ({data})", columns, rows), _accuracies(results, data)],
        [_claim(gains)],
        {},
        numbers,
        ["A negative difference: starting in [0, 1) is better."],
    )


def _column(test: dict[str, float] | None) -> list[Cell]:
    if test is None:
        return [NOTHING] * len(METRICS)
    return [
        Cell(f"{test['z']:.2f}"),
        Cell(f"{test['p']:.2g}"),
        Cell(f"{test['difference']:.4f}"),
        Cell(f"[{test['low']:.4f}, {test['high']:.4f}]"),
    ]


def _accuracies(results: Results, data: str) -> Table:
    columns = [Column("encoding", numeric=False), Column(LARGE), Column(SMALL)]
    rows = []
    for encoding in results.experiment.encodings:
        found = [results.found(Key(data, variant, encoding)) for variant in (LARGE, SMALL)]
        rows.append([Cell(label(encoding)), *(number(one.accuracy if one else None) for one in found)])
    return Table("Accuracy, %", columns, rows)


def _claim(gains: dict[str, float]) -> Claim:
    text = "RoPE-Mixed is more sensitive to its initialisation than LieRE₈"
    if not {"rope_mixed", "liere8"} <= gains.keys():
        return Claim(text, "is not decided", "not run")
    evidence = ", ".join(f"{label(name)} {100 * gain:.2f} points" for name, gain in gains.items())
    return Claim(text, "holds" if gains["rope_mixed"] > gains["liere8"] else "does not hold", f"{evidence}; no test")
