from __future__ import annotations

import re

import pytest

pytest.importorskip("jinja2")

from liere.report.page_template import page_template
from liere.report.table_cells import Cell, Column, Table


def test_numbers_keep_their_units_in_the_same_line():
    unbroken = page_template("page.html.j2").environment.filters["unbroken"]
    shown = unbroken("at 108 px 95 % with p < 0.001 or p = 0.5 over seeds")
    assert shown.replace("\N{NO-BREAK SPACE}", "~") == "at 108~px 95~% with p~<~0.001 or p~=~0.5 over seeds"


def test_columns_of_a_group_share_a_head():
    columns = [Column("name", numeric=False), Column("a", "one"), Column("b", "one"), Column("c", "two"), Column("d")]
    table = Table("Title", columns, [[Cell("<x>"), Cell("1", "2-3", strong=True), Cell("4"), Cell("5"), Cell("6")]])
    template = page_template("page.html.j2").environment.from_string(
        '{% from "macros.html.j2" import show with context %}{{ show(table) }}'
    )
    page = template.render(table=table, colors={})
    assert re.findall(r'colspan="(\d)" class="group"><span>(\w+)', page) == [("2", "one"), ("1", "two")]
    assert page.count('rowspan="2"') == 2  # those without a group
    assert "<strong>1</strong> <small>(2-3)</small>" in page
    assert "&lt;x&gt;" in page


def test_configurations_are_shown_as_yaml():
    environment = page_template("page.html.j2").environment
    text = environment.from_string("{{ {'model': {'depth': 4}} | yaml }}").render()
    assert text == "model:\n  depth: 4"
