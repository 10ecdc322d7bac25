from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

from liere.reproduce.tables.block import build_block
from tests.reproduce.fakes import claims_of, committed_outcome, fake_results

PARAMETERS = {"rope_mixed": 20, "liere4": 40, "liere8": 80, "liere16": 160, "liere": 321}
ACCURACY = {"rope_mixed": 0.7, "liere4": 0.72, "liere8": 0.8, "liere16": 0.75, "liere": 0.74}


def test_blocks_have_their_parameters_and_accuracies_beside_the_papers(tmp_path):
    results = fake_results(
        "block",
        tmp_path,
        lambda key, condition, seed: ACCURACY[key.encoding] + 0.005 * (seed - 1) * (key.encoding == "liere8"),
        seeds=[0, 1, 2],
        details=lambda key, seed: {"encoding_parameters": PARAMETERS[key.encoding]},
    )
    outcome = build_block(results)
    assert [[cell.text for cell in row] for row in outcome.tables[0].rows] == [
        ["CIFAR-10", "2", "20", "9216", "2.00 %", "70.00 (70.00-70.00)", "68.84 (67.93-69.75)"],
        ["CIFAR-10", "4", "40", "27648", "4.00 %", "72.00 (72.00-72.00)", "69.28 (68.38-70.18)"],
        ["CIFAR-10", "8", "80", "64512", "8.00 %", "80.00 (79.50-80.50)", "70.32 (69.42-71.22)"],
        ["CIFAR-10", "16", "160", "138240", "16.00 %", "75.00 (75.00-75.00)", "69.85 (68.95-70.75)"],
        [
            "CIFAR-10",
            "32 (dense; paper 64)",
            "321",
            "580608",
            "32.10 %",
            "74.00 (74.00-74.00)",
            "69.99 (69.09-70.89)",
        ],
    ]
    verdict, evidence = claims_of(outcome)["CIFAR-10: block size 8 is the best"]
    assert verdict == "holds"
    assert evidence.startswith("against LieRE₁₆: ahead in 3 of 3 seeds, p = 0.003 over seeds; +5.0 points")
    found = outcome.numbers["CIFAR-10"]
    assert list(found) == ["2", "4", "8", "16", "32"]
    assert (found["32"]["value"], found["32"]["parameters"]) == (pytest.approx(0.74), 321)
    assert ">16</text>" in outcome.figures["Block sizes, CIFAR-10"].svg


def test_errors_in_the_paper_are_marked_and_noted_once(tmp_path):
    outcome = build_block(
        fake_results("block", tmp_path, lambda *_: 0.5, scale="paper", encodings=["rope_mixed", "liere8"])
    )
    rows = {(row[0].text, row[1].text): row[3].text for row in outcome.tables[0].rows}
    assert rows == {
        ("CIFAR-100", "2"): "9216",
        ("CIFAR-100", "8"): "64512",
        ("UCF101", "2"): "9216*",
        ("UCF101", "8"): "64512*",
    }
    assert len([note for note in outcome.notes if "with three axes there are 1.5 times as many" in note]) == 1


def test_kept_runs_have_as_many_parameters_as_the_formula_says():
    """Two axes, 4 layers, 2 heads of 32, and b (b - 1) / 2 numbers for each of 32 / b blocks."""
    _, outcome = committed_outcome("block")
    for size, found in outcome.numbers["CIFAR-10"].items():
        b = int(size)
        assert found["parameters"] == 2 * 4 * 2 * (32 // b) * b * (b - 1) // 2
