from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

from liere.reproduce.tables.resolution import build_resolution
from tests.reproduce.fakes import claims_of, fake_results, texts_of

BASE = {"absolute": 0.5, "rope_mixed": 0.6, "liere": 0.7}


def accuracy(key, condition, seed: int) -> float:
    """Rescaled positions lose 10 points, each step in size 5, fine-tuning adds 20; seeds of dense LieRE differ."""
    larger = {32: 0, 48: 1, 64: 2}[condition.size]
    varied = 0.005 * (seed - 1) * (key.encoding == "liere")
    gain = 0.2 * key.fine_tuned - 0.1 * (condition.policy == "rescale") - 0.05 * larger
    return BASE[key.encoding] + gain + varied


def test_each_recipe_and_policy_has_its_table(tmp_path):
    outcome = build_resolution(fake_results("resolution", tmp_path, accuracy, seeds=[0, 1, 2]))
    titles = [
        f"Accuracy {recipe}, positions {policy}, %"
        for recipe in ("as trained", "fine-tuned")
        for policy in ("extend", "rescale")
    ]
    assert [table.title for table in outcome.tables] == titles
    rows = {table.title: texts_of(table) for table in outcome.tables}
    assert rows[titles[0]]["LieRE (dense)"] == ["70.0 (69.5-70.5)", "65.0 (64.5-65.5)", "60.0 (59.5-60.5)"]
    assert rows[titles[1]]["LieRE (dense)"] == ["60.0 (59.5-60.5)", "55.0 (54.5-55.5)", "50.0 (49.5-50.5)"]
    assert rows[titles[2]]["RoPE-Mixed"] == ["80.0 (80.0-80.0)", "75.0 (75.0-75.0)", "70.0 (70.0-70.0)"]
    assert rows[titles[3]]["absolute, init 0.02"][2] == "50.0 (50.0-50.0)"
    assert outcome.numbers["fine-tuned, rescale"]["liere"]["64 px"]["value"] == pytest.approx(0.7)
    assert set(outcome.figures) == {
        f"{recipe}, {policy}" for recipe in ("As trained", "Fine-tuned") for policy in ("extend", "rescale")
    }


def test_claims_are_about_the_largest_size(tmp_path):
    claims = claims_of(build_resolution(fake_results("resolution", tmp_path, accuracy, seeds=[0, 1, 2])))
    verdict, evidence = claims["as trained, 64 px: dense LieRE beats RoPE-Mixed"]
    # Differences of 9.5, 10 and 10.5 points: t = 20 sqrt(3), p = 1 - t / sqrt(t^2 + 2) = 0.00083.
    assert (verdict, "p < 0.001 over seeds; +10.0 points" in evidence) == ("holds", True)
    text = "fine-tuned, 48 px: LieRE₈ beats RoPE-Mixed (paper: p = 4.0e-04 at 384 px)"
    assert claims[text] == ("is not decided", "not run")
    extended = claims["fine-tuned, 64 px, LieRE (dense): extended positions are better than rescaled ones"]
    assert extended[0] == "is not decided"  # the same 10 points in every seed: three signs are not enough
    assert "p = 0.250 over seeds; +10.0 points" in extended[1]
    assert len(claims) == 8
