from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

from liere.reproduce.tables.size import build_size
from tests.reproduce.fakes import claims_of, fake_results, texts_of
from tests.reproduce.tables.test_main import accuracy

LESS = {"ViT-Tiny": 0.2, "ViT-Base": 0.0, "ViT-Large": 0.1}


def by_size(key, condition, seed: int) -> float:
    worse = 0.3 if (key.encoding, key.variant) == ("liere8", "ViT-Large") else 0.0
    return accuracy(key, condition, seed) - LESS[key.variant] - worse


def test_each_size_has_its_column_and_its_claim(tmp_path):
    outcome = build_size(fake_results("size", tmp_path, by_size, seeds=[0, 1, 2]))
    (table,) = outcome.tables
    assert table.header[1:] == [f"{size}, {who}" for size in LESS for who in ("ours", "paper")]
    rows = texts_of(table)
    assert rows["LieRE₈"] == [
        "60.0 (59.0-61.0)",
        "65.6 (64.7-66.6)",
        "80.0 (79.0-81.0)",
        "70.3 (69.4-71.2)",
        "40.0 (39.0-41.0)",
        "69.9 (68.9-70.8)",
    ]
    assert rows["LieRE (dense)"][3] == "70.0* (69.1-69.7)"  # an error in the paper
    assert [row[0].text for row in table.rows if row[5].strong] == ["LieRE (dense)"]
    claims = claims_of(outcome)
    assert claims["ViT-Base: LieRE₈ is the most accurate"][0] == "holds"
    assert claims["ViT-Large: LieRE₈ is the most accurate"][0] == "does not hold"
    assert "against LieRE (dense)" in claims["ViT-Large: LieRE₈ is the most accurate"][1]
    assert outcome.numbers["accuracy"]["liere8"]["ViT-Tiny"]["value"] == pytest.approx(0.6)
    assert outcome.numbers["data"] == "CIFAR-10"
