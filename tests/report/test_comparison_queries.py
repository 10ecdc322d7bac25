from __future__ import annotations

import pytest

pytest.importorskip("scipy")

from liere.report.comparison_queries import (
    compare_at,
    evaluation_at,
    has_several_seeds,
    is_ahead,
    pair_at,
    seed_values,
    spread_at,
)
from tests.report.report_data import make_comparison


def with_seeds(**accuracies: list[float]) -> dict:
    """Return a comparison at 108 px with the given accuracy per seed."""
    comparison = make_comparison([*accuracies], sizes=[108])
    for row, values in zip(comparison["encodings"], accuracies.values(), strict=True):
        row["seeds"] = list(range(len(values)))
        row["evaluations"][0]["by_seed"] = values
    return comparison


def test_seeds_of_an_encoding_are_found_by_size():
    row = with_seeds(liere8=[0.9, 0.8, 0.7])["encodings"][0]
    assert seed_values(row, 108) == {0: 0.9, 1: 0.8, 2: 0.7}
    assert seed_values(row, 276) == {}
    assert evaluation_at(row, 276) is None
    assert spread_at(row, 276) is None
    found = spread_at(row, 108)
    assert (found.mean, found.least, found.most) == pytest.approx((0.8, 0.7, 0.9))


def test_two_encodings_are_compared_over_their_common_seeds():
    comparison = with_seeds(absolute=[0.5, 0.5, 0.6], liere8=[0.9, 0.8, 0.7])
    found = compare_at(comparison, 108, "liere8", "absolute")
    assert (found.difference, found.ahead, found.pairs) == (pytest.approx(0.8 / 3), 3, 3)
    assert compare_at(comparison, 276, "liere8", "absolute") is None
    assert compare_at(comparison, 108, "liere8", "nobody") is None
    assert has_several_seeds(comparison)
    assert not has_several_seeds(make_comparison(seeds=1))


def test_pairs_are_found_in_whichever_order():
    comparison = make_comparison(["absolute", "liere8"])
    found = pair_at(comparison, 168, "absolute", "liere8")
    assert found is pair_at(comparison, 168, "liere8", "absolute")
    assert (found["size"], found["first"]) == (168, "liere8")
    assert pair_at(comparison, 168, "absolute", "liere") is None


@pytest.mark.parametrize(
    ("first", "p", "decided"),
    [
        ([0.9, 0.91, 0.92], 0.01, True),
        ([0.9, 0.91, 0.92], 0.2, False),  # examples do not agree
        ([0.9, 0.4, 0.92], 0.01, False),  # seeds do not
    ],
)
def test_seeds_and_examples_must_agree(first, p, decided):
    comparison = with_seeds(absolute=[0.5, 0.5, 0.51], liere8=first)
    comparison["pairs"][0] |= {"difference": 0.3, "p": p}
    assert is_ahead(comparison, 108, "liere8", "absolute") is decided
    assert not is_ahead(comparison, 108, "absolute", "liere8")
    assert not is_ahead(comparison | {"pairs": []}, 108, "liere8", "absolute")
    comparison["pairs"][0]["difference"] = -0.3  # examples say the opposite
    assert not is_ahead(comparison, 108, "liere8", "absolute")
    assert not is_ahead(with_seeds(absolute=[0.5], liere8=[0.9]), 108, "liere8", "absolute")
