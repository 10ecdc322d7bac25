from __future__ import annotations

import math

import pytest

pytest.importorskip("tests.training.requirements")

from liere.reproduce.tables.significance import build_significance
from tests.reproduce.fakes import claims_of, fake_results, texts_of
from tests.reproduce.tables.test_main import accuracy


def test_p_values_are_those_of_each_test(tmp_path):
    """One seed, 400 examples: LieRE_8 is right wherever RoPE-Mixed is, and on 40 more."""
    results = fake_results(
        "significance", tmp_path, lambda key, *_: {"liere8": 0.8, "rope_mixed": 0.7}[key.encoding], seeds=[0]
    )
    outcome = build_significance(results)
    error = math.sqrt(0.1 * 0.9 / 399)
    z = 0.1 / error
    low, high = (f"{100 * (0.1 + sign * 1.959964 * error):+.2f}" for sign in (-1, 1))
    assert texts_of(outcome.tables[0])["CIFAR-10"] == [
        f"+10.00 ({low} to {high})",
        "one seed",
        f"{math.erfc(z / math.sqrt(2)):.1e}",
        f"{2 / 10_001:.1e}",  # no resample has the other sign
        f"{2 * 0.5**40:.1e}",  # McNemar: 40 of 40
        "1.3e-05",
    ]
    numbers = outcome.numbers["p"]["CIFAR-10"]
    assert numbers["difference"] == pytest.approx(0.1)
    assert numbers["exact"] == pytest.approx(2 * 0.5**40)
    assert numbers["seeds"] is None
    assert {verdict for verdict, _ in claims_of(outcome).values()} == {"is not decided"}


def test_seeds_are_tested_by_their_differences(tmp_path):
    outcome = build_significance(fake_results("significance", tmp_path, accuracy, only=["CIFAR-10"]))
    # 9, 9 and 12 points: t = 10 / (sqrt(3) / sqrt(3)) = 10, and p = 1 - 10 / sqrt(102).
    p = 1 - 10 / math.sqrt(102)
    assert texts_of(outcome.tables[0])["CIFAR-10"][1] == f"{p:.1e}"
    assert outcome.numbers["p"]["CIFAR-10"]["seeds"] == pytest.approx(p)
    assert claims_of(outcome)["CIFAR-10: LieRE₈ is significantly more accurate than RoPE-Mixed"][0] == "holds"
