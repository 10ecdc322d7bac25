from __future__ import annotations

import math

import pytest

pytest.importorskip("tests.training.requirements")

from liere.reproduce.tables.shuffling import build_shuffling
from tests.reproduce.fakes import claims_of, committed_outcome, fake_results, texts_of
from tests.reproduce.tables.test_main import BASE

LEFT = {"absolute:init_std=1": 0.9, "absolute": 0.8, "visionllama": 0.7, "rope_mixed": 0.5, "liere8": 0.4, "liere": 0.3}


def accuracy(key, condition, seed: int) -> float:
    """A fraction of each accuracy remains after shuffling; for the seeds of LieRE it varies by 5 points."""
    varied = 0.05 * (seed - 1) * key.encoding.startswith("liere")
    return BASE[key.encoding] * (LEFT[key.encoding] + varied if condition.shuffle else 1)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    return build_shuffling(fake_results("shuffling", tmp_path_factory.mktemp("s"), accuracy, only=["CIFAR-10"]))


def test_drops_are_relative_to_what_was_right_before(outcome):
    (table,) = outcome.tables
    rows = texts_of(table)
    assert rows["LieRE₈"] == ["80.0 (80.0-80.0)", "32.0 (28.0-36.0)", "60.0 (55.0-65.0)", "70.3", "12.3", "82.5"]
    assert rows["RoPE-Mixed"][2:] == ["50.0 (50.0-50.0)", "68.8", "17.1", "75.1"]
    assert rows["absolute, init 0.02"][3:] == ["–"] * 3
    drop = outcome.numbers["drop"]["CIFAR-10, patches"]["liere8"]
    assert drop["value"] == pytest.approx(0.6)
    assert drop["by_seed"] == pytest.approx([0.65, 0.6, 0.55])


def test_the_two_largest_drops_are_held_against_each_other(outcome):
    """Dense LieRE loses 70 %, RoPE-Mixed 50 %: 25, 20 and 15 points more."""
    ((verdict, evidence),) = claims_of(outcome).values()
    assert "LieRE (dense) 70.0 %, RoPE-Mixed 50.0 %, difference" in evidence
    low, high = (float(end) for end in evidence.partition("difference ")[2].split(" over")[0].split(" to "))
    assert low < 20 < high
    assert high - low < 20
    assert verdict == "holds"
    assert evidence.startswith("ahead in 3 of 3 seeds, p = 0.020 over seeds")  # t = 4 sqrt(3)


def test_who_loses_least_does_not_use_positions_most(tmp_path):
    def turned(key, condition, seed: int) -> float:
        left = 0.9 if key.encoding.startswith("liere") else 0.5 + 0.02 * seed
        return 0.5 * (left if condition.shuffle else 1)

    outcome = build_shuffling(fake_results("shuffling", tmp_path, turned, only=["CIFAR-10"]))
    ((verdict, evidence),) = claims_of(outcome).values()
    assert verdict == "does not hold"
    assert "LieRE₈ 10.0 %, absolute, init 1 48.0 %" in evidence


def test_frames_are_a_table_of_their_own_and_slips_are_told(tmp_path):
    def clips(key, condition, seed: int) -> float:
        return {"": 0.8, "patches": 0.4, "frames": 0.6}[condition.shuffle]

    outcome = build_shuffling(fake_results("shuffling", tmp_path, clips, only=["Atari clips"]))
    patches, frames = (texts_of(table) for table in outcome.tables)
    assert patches["LieRE₈"][2].startswith("50.0 (")
    assert patches["LieRE₈"][3:] == ["47.0", "27.8", "40.9"]
    assert patches["absolute, init 1"][3:] == ["40.9", "39.5", "0.0*"]
    assert frames["LieRE₈"][2].startswith("25.0 (")
    assert frames["LieRE₈"][3:] == ["–"] * 3
    assert any("from 40.9 to 39.5 is a drop of 3.4 %, not 0.0 %" in note for note in outcome.notes)


def test_kept_runs_give_the_ratio_of_their_accuracies():
    results, outcome = committed_outcome("shuffling")
    for key, runs in results.runs.items():
        for shuffle in ("patches", "frames"):
            drops = []
            for run in runs:
                found = {
                    one.get("shuffle", ""): one["accuracy"]["value"]
                    for one in run.evaluations("final")
                    if one["size"] == run.config.data.side and "policy" not in one
                }
                if shuffle in found:
                    drops.append(1 - found[shuffle] / found[""])
            if drops:
                shown = outcome.numbers["drop"][f"{key.data}, {shuffle}"][key.encoding]
                assert shown["by_seed"] == pytest.approx(drops)
                assert math.isclose(shown["value"], sum(drops) / len(drops), abs_tol=0.01)
