from __future__ import annotations

import pytest

from liere.report.table_cells import NOTHING, Cell, Column, Table, p_value, percent


def test_details_stand_in_brackets_and_groups_before_names():
    table = Table("Title", [Column("name"), Column("108 px", "accuracy")], [[Cell("a"), Cell("1.0", "0.9-1.1")]])
    assert table.header == ["name", "accuracy, 108 px"]
    assert table.texts == [["a", "1.0 (0.9-1.1)"]]
    assert NOTHING.text == "–"


@pytest.mark.parametrize(
    ("p", "shown"), [(0.00099, "< 0.001"), (0.001, "0.001"), (0.0495, "0.050"), (0.5, "0.500"), (1.0, "1.000")]
)
def test_p_values_have_three_decimals(p, shown):
    assert p_value(p) == shown


def test_shares_are_in_percent():
    assert [percent(share) for share in (0.0, 0.12345, 1.0)] == ["0.0", "12.3", "100.0"]
