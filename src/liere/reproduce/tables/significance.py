"""P-values of RoPE-Mixed vs. LieRE with block size 8, on each data set."""

from __future__ import annotations

from liere.evaluation.paired_tests import paired_bootstrap, paired_difference, paired_z_test
from liere.evaluation.seeds import compare_seeds
from liere.report.table_cells import NOTHING, Cell, Column, Table
from liere.reproduce.claims import compare
from liere.reproduce.outcome import Outcome
from liere.reproduce.paper_numbers import P_VALUES
from liere.reproduce.results import Found, Results, pair, shared
from liere.reproduce.tables.paper_layout import views_notes
from liere.reproduce.wanted_runs import Key

__all__ = ["build_significance"]

EXAMPLES_NOTE = (
    "p over seeds: paired t test. The interval and the other p-values are over test examples, each averaged over "
    "seeds: they describe these trained models, and other seeds may differ."
)


def build_significance(results: Results) -> Outcome:
    """Return the table of p-values of RoPE-Mixed vs. LieRE_8."""
    rows, numbers, claims = [], dict[str, dict[str, float | None]](), []
    for data in results.data:
        first, second = (results.found(Key(data, "", encoding)) for encoding in ("liere8", "rope_mixed"))
        paper = P_VALUES.get(results.paper_data(data))
        cells = [Cell(data), *_tests(first, second), Cell(f"{paper:.1e}") if paper is not None else NOTHING]
        rows.append(cells)
        claims.append(compare(f"{data}: LieRE₈ is significantly more accurate than RoPE-Mixed", first, second))
        if first and second:
            first, second = shared(first, second)
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
        "The paper does not say which test its p-values come from. The one for ImageNet is close to an unpaired z-test "
        "of its accuracies (6.1e-03 from the rounded values).",
        f"The paper's fourth p-value, {P_VALUES['384 px']:.1e} at 384 px, is part of `liere reproduce resolution`.",
        *views_notes(results.data),
        EXAMPLES_NOTE,
    ]
    return Outcome([Table("RoPE-Mixed vs. LieRE₈", columns, rows)], claims, {}, {"p": numbers}, notes)


def _tests(first: Found | None, second: Found | None) -> list[Cell]:
    if first is None or second is None:
        return [NOTHING] * 5
    first, second = shared(first, second)
    both = pair(first, second)
    z = paired_z_test(*both)
    gain = Cell(f"{100 * z.difference:+.2f}", f"{100 * z.low:+.2f} to {100 * z.high:+.2f}")
    seeds = compare_seeds(first.named(first.by_seed), second.named(second.by_seed))
    over_seeds = Cell(f"{seeds.p:.1e}") if seeds else Cell("one seed")
    return [gain, over_seeds, *(Cell(f"{p:.1e}") for p in (z.p, paired_bootstrap(*both).p, paired_difference(*both).p))]
