from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

from liere.flops import count_flops
from liere.presets import ViTSize
from liere.reproduce.tables.sharing import build_sharing
from tests.reproduce.fakes import claims_of, fake_results, texts_of

ACCURACY = {("nothing", "rope_mixed"): 0.7, ("nothing", "liere8"): 0.8, ("across both", "liere8"): 0.75}


def operations(encoding: str, **options) -> str:
    found = count_flops(
        ViTSize(dim=64, depth=4, heads=2, mlp_dim=128),
        encoding,
        image_size=(32, 32),
        patch_size=(4, 4),
        num_classes=10,
        in_channels=3,
        num_prefix_tokens=1,
        batch_size=128,
        **options,
    ).true
    return f"{found / 1e6:.1f} M"


def test_what_is_shared_costs_accuracy_and_saves_parameters(tmp_path):
    results = fake_results(
        "sharing",
        tmp_path,
        lambda key, condition, seed: ACCURACY[key.variant, key.encoding] + 0.005 * seed * (key.encoding == "liere8"),
        seeds=[0, 1, 2],
        details=lambda key, seed: {"encoding_parameters": 8 if key.variant == "across both" else 1_234},
    )
    outcome = build_sharing(results)
    shared = operations("liere8", share_heads=True, share_layers=True)
    assert texts_of(outcome.tables[0]) == {
        "nothing": [
            *("70.0 (70.0-70.0)", "68.8*", "1,234", operations("rope_mixed")),
            *("80.5 (80.0-81.0)", "70.3*", "1,234", operations("liere8")),
        ],
        "across both": [
            *("–", "68.3", "–", "–"),
            *("75.5 (75.0-76.0)", "69.5", "8", shared),
        ],
    }
    assert 10.9 < float(shared.split()[0]) <= float(operations("liere8").split()[0]) < 14
    claims = claims_of(outcome)
    assert claims["LieRE₈: separate generators are better than generators shared across both"][0] == "is not decided"
    assert "p = 0.250 over seeds; +5.0 points" in next(iter(claims.values()))[1]  # equal differences: signs alone
    assert claims["LieRE₈, shared across both, still beats RoPE-Mixed"][0] == "holds"
    assert outcome.numbers["across both"]["liere8"]["by_seed"] == pytest.approx([0.75, 0.755, 0.76], abs=0.0013)
