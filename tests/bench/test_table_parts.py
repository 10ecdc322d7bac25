"""Medians, quartiles and times as text."""

from __future__ import annotations

from liere.bench.table_parts import seconds, with_quartiles


def test_numbers_are_scaled_and_rounded():
    found = {"median": 0.0404, "quartiles": [0.0399, 0.0412]}
    assert with_quartiles(found, digits=1, scale=100) == "4.0 [4.0-4.1]"
    assert (seconds(0.5), seconds(1.0)) == ("500.0 ms", "1.00 s")
