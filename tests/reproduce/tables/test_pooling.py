from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

from liere.reproduce.tables.pooling import build_pooling
from tests.reproduce.fakes import claims_of, fake_results, texts_of


@pytest.mark.parametrize(("mean", "verdict", "gain"), [(0.75, "holds", "+5.0"), (0.65, "does not hold", "-5.0")])
def test_mean_pooling_is_held_against_a_cls_token(tmp_path, mean, verdict, gain):
    """The seeds differ by 4, 5 and 6 points: t is 5 sqrt(3)."""

    def accuracy(key, condition, seed: int) -> float:
        return 0.7 if key.variant == "CLS" else mean + 0.01 * (seed - 1)

    outcome = build_pooling(fake_results("pooling", tmp_path, accuracy, seeds=[0, 1, 2]))
    low, high = 100 * mean - 1, 100 * mean + 1
    assert texts_of(outcome.tables[0]) == {"LieRE₈": ["70.0 (70.0-70.0)", f"{100 * mean:.1f} ({low:.1f}-{high:.1f})"]}
    ((found, evidence),) = claims_of(outcome).values()
    assert found == verdict
    assert f"{gain} points" in evidence
    assert "p = 0.013 over seeds" in evidence  # 1 - t / sqrt(t^2 + 2)
