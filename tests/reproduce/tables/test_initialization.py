from __future__ import annotations

import math

import pytest

pytest.importorskip("tests.training.requirements")

from liere.reproduce.tables.initialization import build_init
from tests.reproduce.fakes import claims_of, fake_results, texts_of


def z_column(difference: float, count: int = 400) -> list[str]:
    """Return the paired test for a change in which this fraction of answers becomes wrong and none becomes right."""
    error = math.sqrt(difference * (1 - difference) / (count - 1))
    z = -difference / error
    reach = 1.959964 * error
    p = math.erfc(-z / math.sqrt(2))
    return [
        f"{z:.2f}",
        f"{p:.2g}",
        f"{-difference:.4f}",
        f"[{-difference - reach:.4f}, {-difference + reach:.4f}]",
    ]


def test_z_is_that_of_the_answers_that_are_lost(tmp_path):
    """One seed: with the small initialization, LieRE_8 loses 2.5 points and RoPE-Mixed 10."""
    found = {("2 pi", "liere8"): 0.8, ("1", "liere8"): 0.775, ("2 pi", "rope_mixed"): 0.7, ("1", "rope_mixed"): 0.6}
    outcome = build_init(fake_results("init", tmp_path, lambda key, *_: found[key.variant, key.encoding]))
    tests, accuracies = outcome.tables
    assert tests.header == ["metric", "LieRE₈, ours", "LieRE₈, paper", "RoPE-Mixed, ours", "RoPE-Mixed, paper"]
    rows = list(texts_of(tests).values())
    assert [row[0] for row in rows] == z_column(0.025)
    assert [row[1] for row in rows] == ["-1.81", "0.07", "-0.0118", "[-0.0246, 0.0010]"]
    assert [row[2] for row in rows] == z_column(0.1)
    assert [row[3] for row in rows] == ["-3.85", "0.00012", "-0.0255", "[-0.0385, -0.0125]"]
    assert [cell.partition(" ")[0] for cell in texts_of(accuracies)["LieRE₈"]] == ["80.0", "77.5"]
    assert outcome.numbers["rope_mixed"]["difference"] == pytest.approx(-0.1)
    ((verdict, evidence),) = claims_of(outcome).values()
    assert verdict == "is not decided"
    assert evidence == (
        "one seed; LieRE₈ -2.5 points, RoPE-Mixed -10.0 points; the intervals over test examples do not overlap"
    )


@pytest.mark.parametrize(
    ("mixed", "liere8", "verdict"),
    [
        ((0.1, 0.11, 0.12), 0.02, "holds"),
        ((0.01, 0.0, 0.02), 0.06, "does not hold"),
        ((0.1, 0.0, 0.1), 0.02, "is not decided"),  # the seeds do not agree
        ((0.1, 0.11, 0.12), 0.06, "is not decided"),  # the intervals over examples overlap
    ],
)
def test_seeds_and_examples_decide_who_is_more_sensitive(tmp_path, mixed, liere8, verdict):
    def accuracy(key, condition, seed: int) -> float:
        if key.variant == "2 pi":
            return 0.7
        return 0.7 - (mixed[seed] if key.encoding == "rope_mixed" else liere8)

    outcome = build_init(fake_results("init", tmp_path, accuracy, seeds=[0, 1, 2]))
    ((found, _),) = claims_of(outcome).values()
    assert found == verdict
