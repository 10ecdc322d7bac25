from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

from liere.reproduce.tables.fraction import build_fraction
from tests.reproduce.fakes import claims_of, fake_results, texts_of
from tests.reproduce.tables.test_main import accuracy

SHARES = ("20 %", "40 %", "60 %", "80 %", "90 %", "100 %")
CHOSEN = ["absolute", "visionllama", "liere8"]


def by_share(key, condition, seed: int) -> float:
    """Fewer examples give lower accuracy; with 20 % of them, LieRE_8 is no better than VisionLLaMA."""
    if (key.encoding, key.variant) == ("liere8", "20 %"):
        return 0.5 + 0.01 * seed
    return accuracy(key, condition, seed) - 0.02 * (5 - SHARES.index(key.variant))


def test_each_share_has_its_column_and_claims_are_about_all_of_them(tmp_path):
    outcome = build_fraction(fake_results("fraction", tmp_path, by_share, seeds=[0, 1, 2], encodings=CHOSEN))
    (table,) = outcome.tables
    assert table.header[1:] == [f"{share}, ours" for share in SHARES]  # the paper has a figure, without numbers
    assert texts_of(table)["LieRE₈"] == [
        "51.0 (50.0-52.0)",
        "72.0 (71.0-73.0)",
        "74.0 (73.0-75.0)",
        "76.0 (75.0-77.0)",
        "78.0 (77.0-79.0)",
        "80.0 (79.0-81.0)",
    ]
    assert texts_of(table)["VisionLLaMA"][0] == "50.0 (49.0-51.0)"
    evidence = "at {} of 5 fractions; not corrected for multiple tests"
    claims = claims_of(outcome)
    assert claims["LieRE₈ beats absolute, init 0.02 at every fraction of the data below 100 %"] == (
        "holds",
        evidence.format(5),
    )
    assert claims["LieRE₈ beats VisionLLaMA at every fraction of the data below 100 %"] == (
        "is not decided",
        evidence.format(4),
    )
    assert outcome.numbers["accuracy"]["liere8"]["40 %"]["value"] == pytest.approx(0.72)
