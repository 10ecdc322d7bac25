"""Accuracies: means, worst and best seeds, the paper's numbers next to them, and claims decided over seeds."""

from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

from liere.reproduce.tables.main import build_main
from tests.reproduce.fakes import claims_of, committed_outcome, fake_results, texts_of

BASE = {
    "absolute:init_std=1": 0.5,
    "absolute": 0.55,
    "visionllama": 0.6,
    "rope_mixed": 0.7,
    "liere8": 0.8,
    "liere": 0.75,
}


def accuracy(key, condition, seed: int) -> float:
    """Three seeds: LieRE_8 is 4, 4 and 7 points better than dense LieRE, and so on."""
    return BASE[key.encoding] + 0.01 * ((-1, 0, 1) if key.encoding == "liere8" else (0, 1, -1))[seed]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("main")
    details = {"liere8": 30.0}
    return build_main(
        fake_results(
            "main",
            folder,
            accuracy,
            only=["CIFAR-10"],
            details=lambda key, seed: {"seconds": details.get(key.encoding, 10.0) + seed},
        )
    )


def test_ours_are_means_with_the_worst_and_the_best_seed_beside_the_papers(outcome):
    table, seeds = outcome.tables
    assert table.header == ["encoding", "CIFAR-10, ours", "CIFAR-10, paper"]
    assert texts_of(table) == {
        "absolute, init 1": ["50.0 (49.0-51.0)", "63.9* (62.9-65.8)"],
        "absolute, init 0.02": ["55.0 (54.0-56.0)", "–"],
        "VisionLLaMA": ["60.0 (59.0-61.0)", "65.5 (64.6-66.5)"],
        "RoPE-Mixed": ["70.0 (69.0-71.0)", "68.8 (67.9-69.7)"],
        "LieRE₈": ["80.0 (79.0-81.0)", "70.3 (69.4-71.2)"],
        "LieRE (dense)": ["75.0 (74.0-76.0)", "70.0 (69.1-70.9)"],
    }
    assert [row[0].text for row in table.rows if row[1].strong] == ["LieRE₈"]
    assert texts_of(seeds)["LieRE₈"] == ["79.0, 80.0, 81.0"]
    assert texts_of(seeds)["RoPE-Mixed"] == ["70.0, 71.0, 69.0"]


def test_json_has_the_same_numbers_and_the_time_that_training_took(outcome):
    found = outcome.numbers["accuracy"]["liere8"]["CIFAR-10"]
    assert found["value"] == pytest.approx(0.8)
    assert found["by_seed"] == pytest.approx([0.79, 0.80, 0.81])
    # t interval: 0.8 +- 4.3027 * 0.01 / sqrt(3)
    assert (found["over_seeds"]["low"], found["over_seeds"]["high"]) == pytest.approx((0.77516, 0.82484), abs=1e-5)
    assert found["seconds"] == 31.0
    assert outcome.numbers["accuracy"]["liere"]["CIFAR-10"]["seconds"] == 11.0


def test_the_best_is_held_against_the_second_best_over_seeds(outcome):
    claims = claims_of(outcome)
    # Differences of 4, 4 and 7 points: t = 5, and with two degrees of freedom p = 1 - 5 / sqrt(27) = 0.038.
    assert claims["CIFAR-10: LieRE₈ is the most accurate"] == (
        "holds",
        "against LieRE (dense): ahead in 3 of 3 seeds, p = 0.038 over seeds; +5.0 points, p < 0.001 on these test "
        "examples",
    )
    verdict, evidence = claims["CIFAR-10: LieRE₈ beats absolute, init 0.02"]
    assert (verdict, "+25.0 points" in evidence) == ("holds", True)
    assert len(claims) == 4


def test_slips_of_the_paper_are_told(outcome):
    assert outcome.notes[0] == "Ours: mean over seeds, in parentheses the worst and the best seed."
    assert "* absolute, init 1, CIFAR-10: error in the paper; 10,000 test images give 62.9-64.8, not 62.9-65.8." in (
        outcome.notes
    )


def test_the_figure_has_every_encoding(outcome):
    svg = outcome.figures["Accuracy"].svg
    assert all(f"{name}</text>" in svg for name in ("VisionLLaMA", "RoPE-Mixed", "LieRE₈", "LieRE (dense)"))


def test_kept_runs_give_the_means_of_their_predictions():
    results, outcome = committed_outcome("main")
    for key, runs in results.runs.items():
        found = outcome.numbers["accuracy"][key.encoding][key.data]
        counted = []
        for run in runs:
            (record,) = [one for one in run.evaluations("final") if set(one) & {"shuffle", "policy"} == set()]
            counted.append(record["accuracy"]["value"])
        assert found["by_seed"] == pytest.approx(counted)
        assert found["value"] == pytest.approx(sum(counted) / len(counted))
