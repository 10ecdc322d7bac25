"""Accuracies, losses and p-values of the encodings on each data set."""

from __future__ import annotations

from collections.abc import Sequence

from liere.evaluation.paired_tests import paired_bootstrap, paired_difference, paired_z_test
from liere.evaluation.seeds import compare_seeds
from liere.report.drawing import Drawing
from liere.report.table_cells import NOTHING, Cell, Column, Table
from liere.reproduce.claims import compare, is_best
from liere.reproduce.measured import Measured
from liere.reproduce.outcome import Claim, Outcome
from liere.reproduce.outcome_charts import draw_columns
from liere.reproduce.paper_numbers import LOSS, MAIN, P_VALUES, Printed
from liere.reproduce.results import Found, Results, pair
from liere.reproduce.row_labels import label
from liere.reproduce.tables.grid import grid_numbers, grid_table, interval_note, slips
from liere.reproduce.wanted_runs import Key

__all__ = ["VIEWS_NOTE", "build_loss", "build_main", "build_significance"]

VIEWS_NOTE = (
    "UCF101: the paper's intervals of 0.4 points are those of 56,745 clips (15 of each of 3,783 videos), counted one "
    "by one, as its code does; ours are of videos, with the probabilities of their clips averaged."
)
EXAMPLES_NOTE = (
    "p over seeds: a paired t test. Other p-values and the interval are over test examples, each counted with its mean "
    "over seeds: they are about these trained models, and other seeds may differ."
)


def build_main(results: Results) -> Outcome:
    """Table of accuracies."""
    encodings, columns = results.experiment.encodings, results.data

    def ours(encoding: str, data: str) -> Measured | None:
        found = results.found(Key(data, "", encoding))
        return found.accuracy if found else None

    def paper(row: str, data: str) -> Printed | None:
        return MAIN.get(row, {}).get(results.paper_data(data))

    table = grid_table("Top-1 accuracy, %", encodings, columns, ours, paper)
    claims = [claim for data in columns for claim in _accuracy_claims(results, data)]
    numbers = grid_numbers(encodings, columns, ours)
    for encoding, row in numbers.items():
        for data, cell in row.items():
            key = Key(data, "", encoding)
            cell["seconds"] = round(results.seconds(key), 1)
    figure: dict[str, Drawing] = {"Accuracy": draw_columns("Accuracy, %", encodings, columns, ours, ordered=False)}
    notes = [interval_note(results), *_views(columns), *slips(encodings, columns, paper)]
    return Outcome([table, _seed_table(results)], claims, figure, {"accuracy": numbers}, notes)


def build_loss(results: Results) -> Outcome:
    """Table of losses."""
    encodings, columns = results.experiment.encodings, results.data

    def ours(encoding: str, data: str) -> Measured | None:
        found = results.found(Key(data, "", encoding))
        return found.loss if found else None

    def paper(row: str, data: str) -> Printed | None:
        return LOSS.get(row, {}).get(results.paper_data(data))

    table = grid_table("Validation loss", encodings, columns, ours, paper, digits=2, scale=1, best=min)
    claims = []
    for data in columns:
        found = {encoding: results.found(Key(data, "", encoding)) for encoding in encodings}
        claims.append(is_best(f"{data}: LieRE₈ has the least loss", "liere8", found, loss=True))
    notes = [interval_note(results), *_views(columns), *slips(encodings, columns, paper)]
    return Outcome([table], claims, {}, {"loss": grid_numbers(encodings, columns, ours)}, notes)


def build_significance(results: Results) -> Outcome:
    """Table of p-values: RoPE-Mixed against LieRE_8."""
    rows, numbers, claims = [], dict[str, dict[str, float | None]](), []
    for data in results.data:
        first, second = (results.found(Key(data, "", encoding)) for encoding in ("liere8", "rope_mixed"))
        paper = P_VALUES.get(results.paper_data(data))
        cells = [Cell(data), *_tests(first, second), Cell(f"{paper:.1e}") if paper is not None else NOTHING]
        rows.append(cells)
        claims.append(compare(f"{data}: LieRE₈ is more accurate than RoPE-Mixed, significantly", first, second))
        if first and second:
            both = pair(first, second)
            z, drawn, exact = paired_z_test(*both), paired_bootstrap(*both), paired_difference(*both)
            seeds = compare_seeds(first.named(first.by_seed), second.named(second.by_seed))
            numbers[data] = {"difference": z.difference, "z": z.p, "bootstrap": drawn.p, "exact": exact.p}
            numbers[data]["seeds"] = seeds.p if seeds else None
    columns = [
        Column("data set", numeric=False),
        Column("difference, points"),
        Column("p, seeds"),
        Column("p, z-test"),
        Column("p, bootstrap"),
        Column("p, McNemar or permutations"),
        Column("p, paper"),
    ]
    notes = [
        "The paper does not say which test its p-values are of. That of ImageNet is near an unpaired z-test of its "
        "accuracies (6.1e-03 from the rounded ones).",
        f"The paper's fourth p-value, {P_VALUES['384 px']:.1e} at 384 px, is with `liere reproduce resolution`.",
        *_views(results.data),
        EXAMPLES_NOTE,
    ]
    return Outcome([Table("RoPE-Mixed against LieRE₈", columns, rows)], claims, {}, {"p": numbers}, notes)


def _tests(first: Found | None, second: Found | None) -> list[Cell]:
    if first is None or second is None:
        return [NOTHING] * 5
    both = pair(first, second)
    z = paired_z_test(*both)
    gain = Cell(f"{100 * z.difference:+.2f}", f"{100 * z.low:+.2f} to {100 * z.high:+.2f}")
    seeds = compare_seeds(first.named(first.by_seed), second.named(second.by_seed))
    over_seeds = Cell(f"{seeds.p:.1e}") if seeds else Cell("one seed")
    return [gain, over_seeds, *(Cell(f"{p:.1e}") for p in (z.p, paired_bootstrap(*both).p, paired_difference(*both).p))]


def _accuracy_claims(results: Results, data: str) -> list[Claim]:
    encodings = results.encodings(data)
    found = {encoding: results.found(Key(data, "", encoding)) for encoding in encodings}
    claims = [is_best(f"{data}: LieRE₈ is the most accurate", "liere8", found)]
    claims.append(compare(f"{data}: LieRE₈ beats RoPE-Mixed", found.get("liere8"), found.get("rope_mixed")))
    for baseline in ("absolute:init_std=1", "absolute"):
        if baseline in found:
            claims.append(compare(f"{data}: LieRE₈ beats {label(baseline)}", found.get("liere8"), found[baseline]))
    return claims


def _seed_table(results: Results) -> Table:
    columns = [Column("encoding", numeric=False), *(Column(data) for data in results.data)]
    rows = []
    for encoding in results.experiment.encodings:
        cells = [Cell(label(encoding))]
        for data in results.data:
            found = results.found(Key(data, "", encoding))
            cells.append(Cell(", ".join(f"{100 * value:.1f}" for value in found.by_seed)) if found else NOTHING)
        rows.append(cells)
    return Table("Accuracy of each seed, %", columns, rows)


def _views(columns: Sequence[str]) -> list[str]:
    """Say how the paper counts clips, if it is about clips."""
    return [VIEWS_NOTE] if "UCF101" in columns else []
