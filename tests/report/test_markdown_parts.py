from __future__ import annotations

import pytest

from liere.report.markdown_parts import escape, fenced, file_name, folded, link, markdown_table
from liere.report.table_cells import NOTHING, Cell, Column, Table

TABLE = Table(
    "Title",
    [Column("name", numeric=False), Column("108 px", "accuracy")],
    [[Cell("a|b"), Cell("99.0", "98.0-99.5", strong=True)], [Cell("c"), NOTHING]],
    notes=["A <note>."],
)


def test_a_table_has_its_heads_alignment_and_marks_and_its_notes_below():
    table, note = markdown_table(TABLE)
    assert table.splitlines() == [
        "| name | accuracy, 108 px |",
        "| --- | ---: |",
        r"| a\|b | **99.0 (98.0-99.5)** |",
        "| c | – |",
    ]
    assert note == r"A \<note\>."
    assert markdown_table(Table("Empty", TABLE.columns, [], notes=["not shown"])) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [("snake_case _this_", r"snake_case \_this\_"), ("line\nbreak", "line break"), ("1 * 2 `x`", r"1 \* 2 \`x\`")],
)
def test_text_is_shown_as_it_is(text, shown):
    assert escape(text) == shown


def test_links_lead_to_files_of_any_name():
    assert link("a [b]", "my (first) report", "x#1.png") == r"[a \[b\]](my%20%28first%29%20report/x%231.png)"


def test_a_fence_is_longer_than_any_inside():
    assert fenced("bash", "ls") == "```bash\nls\n```"
    assert fenced("", "```\n````") == "`````\n```\n````\n`````"


def test_names_of_files_and_text_to_unfold():
    assert file_name("Block sizes, CIFAR-10") == "block-sizes-cifar-10.png"
    assert folded("More", "text").splitlines() == [
        "<details>",
        "<summary>More</summary>",
        "",
        "text",
        "",
        "</details>",
    ]
