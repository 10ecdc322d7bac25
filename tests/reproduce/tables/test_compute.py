from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

from liere.reproduce.tables.compute import build_compute
from liere.reproduce.wanted_runs import Key
from liere.runs.cost import forward_operations
from tests.reproduce.fakes import claims_of, fake_results, texts_of

CURVES = {
    "absolute": (0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6),  # ends at 60 % after 800 examples
    "liere8": (0.5, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7),  # reaches 60 % after 150
    "rope_mixed": (0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.59),  # never reaches it
}


@pytest.fixture
def results(tmp_path):
    return fake_results(
        "compute",
        tmp_path,
        lambda *_: 0.5,
        encodings=[*CURVES],
        details=lambda key, seed: {"curve": CURVES[key.encoding]},
    )


def test_what_reaches_the_baselines_end_is_counted_in_examples_and_operations(results):
    outcome = build_compute(results)
    (table,) = outcome.tables
    assert table.title == "CIFAR-10: to reach 60.0 %, the final accuracy of absolute, init 0.02"
    cost = {name: forward_operations(results.runs[Key("CIFAR-10", "", name)][0].config) for name in CURVES}
    assert 1 < cost["liere8"] / cost["absolute"] < 1.1
    less = f"{800 * cost['absolute'] / (150 * cost['liere8']):.2f}"
    assert texts_of(table) == {
        "absolute, init 0.02": ["800", "1.00", "1.00", "1.00", "–"],
        "LieRE₈": ["150", "5.33", less, less, "3.9"],
        "RoPE-Mixed": ["not reached", "–", "–", "–", "–"],
    }
    found = outcome.numbers["absolute"]["liere8"]
    assert (found["target"], found["examples"]) == pytest.approx((0.6, 150))
    assert found["fewer_than_whole_training"] == pytest.approx(800 * cost["absolute"] / (150 * cost["liere8"]))
    assert outcome.numbers["absolute"]["rope_mixed"]["examples"] is None


def test_a_baseline_that_rises_no_more_is_charged_until_it_was_there(tmp_path):
    """Absolute positions reach their final accuracy after 400 of 800 examples; LieRE_8 needs 150, 2.67 times fewer."""
    flat = (0.2, 0.3, 0.45, 0.6, 0.6, 0.6, 0.6, 0.6)
    results = fake_results(
        "compute",
        tmp_path,
        lambda *_: 0.5,
        encodings=["absolute", "liere8"],
        details=lambda key, seed: {"curve": flat if key.encoding == "absolute" else CURVES["liere8"]},
    )
    row = texts_of(build_compute(results).tables[0])["LieRE₈"]
    assert row[:2] == ["150", "2.67"]
    assert float(row[3]) == pytest.approx(2 * float(row[2]), abs=0.02)  # relative to the whole training


def test_the_same_share_in_every_seed_is_told_with_the_claim(results):
    ((text, (verdict, evidence)),) = claims_of(build_compute(results)).items()
    assert text == "LieRE₈ reaches the final accuracy of absolute, init 0.02 with 3.9 times less compute"
    assert verdict == "is not decided"  # equal shares leave three signs: p = 0.25
    assert evidence.startswith("ahead in 3 of 3 seeds, p = 0.250 over seeds; 5.")
    assert "; not tested over examples" in evidence


def test_without_absolute_positions_there_is_nothing_to_measure_against(tmp_path):
    results = fake_results("main", tmp_path, lambda *_: 0.5, only=["CIFAR-10"], seeds=[0], encodings=["liere8"])
    with pytest.raises(ValueError, match="no finished run of absolute positions"):
        build_compute(results)
