from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

from liere.reproduce.tables.flops import build_flops
from tests.reproduce.fakes import claims_of, texts_of


def test_multiply_adds_of_vit_base_are_those_of_its_layers():
    """65 tokens of 768, 12 layers: four projections, an MLP of 3072, and attention twice over all pairs of tokens."""
    tokens, dim = 65, 768
    layer = tokens * dim * (4 * dim + 2 * 3072) + 2 * tokens**2 * dim
    outcome = build_flops()
    (table,) = outcome.tables
    at = table.header.index("ViT-Base, as the paper counts")
    plain = next(row for row in table.rows if row[0].text == "absolute")
    shown = 1e9 * float(plain[at].value.removesuffix(" G"))
    assert shown == pytest.approx(12 * layer, rel=0.005)
    assert plain[at].detail == "+0.000 %"
    assert plain[at + 1].detail == "+0.0 %"


def test_the_paper_leaves_the_exponential_out_and_the_true_figure_has_it():
    outcome = build_flops()
    (table,) = outcome.tables
    at = table.header.index("ViT-Base, as the paper counts")
    row = next(row for row in table.rows if row[0].text == "LieRE₆₄")
    shown, true = (1e9 * float(cell.value.removesuffix(" G")) for cell in row[at : at + 2])
    # At least one product of 64 x 64 matrices: for each of 64 positions, 12 heads and 12 layers, once for 512 images.
    assert true - shown > 64**3 * 64 * 12 * 12 / 512
    # Rotating queries and keys: 64 multiply-adds for each of their 768 numbers, at 64 positions and in 12 layers.
    rotating = 2 * 64 * 768 * 64 * 12
    assert shown - outcome.numbers["absolute"]["vit_base"]["paper"] == pytest.approx(rotating, rel=0.05)


def test_slips_are_starred_and_told():
    outcome = build_flops()
    rows = texts_of(outcome.tables[0])
    starred = [(name, cell) for name, row in rows.items() for cell in row if cell.endswith("*")]
    assert ("0.970 G*" in [cell for _, cell in starred]) is True
    assert len([note for note in outcome.notes if "error in the paper" in note]) == len(starred)


def test_the_claim_turns_with_what_the_exponential_costs(monkeypatch):
    outcome = build_flops()
    ((verdict, evidence),) = claims_of(outcome).values()
    largest = max(
        found[size]["true"] / outcome.numbers["absolute"][size]["true"] - 1
        for found in outcome.numbers.values()
        for size in found
    )
    assert f"up to +{100 * largest:.1f} % with the exponential" in evidence
    assert verdict == ("holds" if largest < 0.05 else "does not hold")
    monkeypatch.setattr("liere.reproduce.tables.flops.LARGE_DIFFERENCE", largest / 2)
    assert claims_of(build_flops()).popitem()[1][0] == "does not hold"
    monkeypatch.setattr("liere.reproduce.tables.flops.LARGE_DIFFERENCE", 2 * largest)
    assert claims_of(build_flops()).popitem()[1][0] == "holds"
