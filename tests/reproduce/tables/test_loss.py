from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

from liere.reproduce.tables.loss import build_loss
from tests.reproduce.fakes import claims_of, fake_results, texts_of
from tests.reproduce.tables.test_main import accuracy


def test_losses_are_means_and_the_least_is_the_best(tmp_path):
    """Correct answers have loss 0.5, wrong ones 2.0: 80 % accuracy gives 0.8, and each point less adds 0.015."""
    results = fake_results("loss", tmp_path, lambda *one: accuracy(*one) + 0.0025, only=["CIFAR-10"])
    outcome = build_loss(results)
    (table,) = outcome.tables
    assert texts_of(table) == {
        "absolute, init 1": ["1.25 (1.23-1.26)", "1.56* (1.47-1.56)"],
        "absolute, init 0.02": ["1.17 (1.16-1.19)", "–"],
        "VisionLLaMA": ["1.10 (1.08-1.11)", "1.56 (1.51-1.61)"],
        "RoPE-Mixed": ["0.95 (0.93-0.96)", "1.38 (1.33-1.43)"],
        "LieRE₈": ["0.80 (0.78-0.81)", "1.36 (1.31-1.41)"],
        "LieRE (dense)": ["0.87 (0.86-0.89)", "1.37 (1.33-1.42)"],
    }
    assert [row[0].text for row in table.rows if row[1].strong] == ["LieRE₈"]
    assert outcome.numbers["loss"]["liere8"]["CIFAR-10"]["by_seed"] == pytest.approx([0.81125, 0.79625, 0.78125])
    assert claims_of(outcome) == {
        "CIFAR-10: LieRE₈ has the lowest loss": (
            "holds",
            "against LieRE (dense): ahead in 3 of 3 seeds, p = 0.038 over seeds; +0.075, p < 0.001 on these test "
            "examples",
        )
    }
