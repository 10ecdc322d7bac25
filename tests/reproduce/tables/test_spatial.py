from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

from liere.reproduce.tables.spatial import build_spatial
from tests.reproduce.fakes import claims_of, committed_outcome, fake_results, texts_of

AT = {108: 0.0, 168: 0.05, 276: 0.3}
LIERE8 = "liere8:init_scale=3.1416"


def accuracy(key, condition, seed: int) -> float:
    """Absolute positions guess; RoPE-Mixed drops at larger sizes; LieRE does not."""
    if key.encoding == LIERE8:
        return 0.98 + 0.01 * (seed - 1)
    if key.encoding == "rope_mixed":
        return 0.99 - AT[condition.size]
    return 0.44 + 0.01 * seed


def test_accuracies_by_size_and_claims_at_the_ends(tmp_path):
    chosen = ["absolute:init_std=1", "rope_mixed", LIERE8]
    outcome = build_spatial(fake_results("spatial", tmp_path, accuracy, encodings=chosen))
    (table,) = outcome.tables
    rows = texts_of(table)
    assert [row[0::2] for row in rows.values()] == [
        ["45.0 (44.0-46.0)"] * 3,
        ["99.0 (99.0-99.0)", "94.0 (94.0-94.0)", "69.0 (69.0-69.0)"],
        ["98.0 (97.0-99.0)"] * 3,
    ]
    assert {name: row[1::2] for name, row in rows.items()} == {
        "absolute, init 1": ["45.1 (43.1-47.7)", "41.0 (39.0-43.2)", "40.1 (38.2-42.0)"],
        "RoPE-Mixed": ["100.0 (99.5-100.0)", "98.6 (97.6-98.7)", "88.6 (87.4-89.9)"],
        "LieRE₈, init 3.1416": ["99.5 (99.2-99.8)", "99.7 (99.4-99.9)", "99.7 (99.5-99.9)"],
    }
    claims = claims_of(outcome)
    assert list(claims) == [
        "108 px: LieRE₈, init 3.1416 beats absolute, init 1",
        "276 px: LieRE₈, init 3.1416 beats absolute, init 1",
        "276 px: LieRE₈, init 3.1416 beats RoPE-Mixed",
    ]
    # Differences of 28, 29 and 30 points: t = 29 sqrt(3), p = 1 - t / sqrt(t^2 + 2).
    verdict, evidence = claims["276 px: LieRE₈, init 3.1416 beats RoPE-Mixed"]
    assert verdict == "holds"
    assert "ahead in 3 of 3 seeds, p < 0.001 over seeds; +29.0 points" in evidence
    assert outcome.numbers["accuracy"]["rope_mixed"]["276 px"]["by_seed"] == pytest.approx([0.69] * 3)
    assert "Paper: ViT-B (85 M parameters), 800,000 examples." in outcome.notes
    assert ">276 px</text>" in outcome.figures["Accuracy"].svg


def test_longer_training_is_a_note_beside_the_papers(tmp_path):
    outcome = build_spatial(
        fake_results(
            "spatial",
            tmp_path,
            lambda key, *_: 0.475 if key.variant else 0.44,
            scale="paper",
            encodings=["absolute:init_std=1"],
        )
    )
    assert outcome.notes[-1] == "absolute, init 1, 2 M examples, 108 px: 47.5 %; paper 47.2 %."


def test_kept_runs_give_the_accuracies_of_their_records():
    results, outcome = committed_outcome("spatial")
    for key, runs in results.runs.items():
        for column, found in outcome.numbers["accuracy"][key.encoding].items():
            records = [one for run in runs for one in run.evaluations("final") if f"{one['size']} px" == column]
            assert found["by_seed"] == pytest.approx([one["accuracy"]["value"] for one in records])
