"""Tables as nodes of a page: real tables, which wrap and scroll on a small screen."""

from __future__ import annotations

import re
from itertools import groupby

from docutils import nodes

from liere.report.table_cells import Cell, Column, Table

__all__ = ["table_nodes", "text_nodes"]

OPTION = re.compile(r"(?<![`\w-])--\w[\w.-]*\w(?=[^`]*(?:`[^`]*`[^`]*)*$)")  # outside of backticks


def table_nodes(table: Table, *, with_title: bool = True) -> list[nodes.Node]:
    """Return a table with its caption, and its notes below."""
    shown = nodes.table(classes=["result"])
    if with_title and table.title:
        shown += nodes.title("", table.title)
    group = nodes.tgroup(cols=len(table.columns))
    group += [nodes.colspec(colwidth=1) for _ in table.columns]
    head, body = nodes.thead(), nodes.tbody()
    head += _head_rows(table.columns)
    body += [_row(cells, table) for cells in table.rows]
    group += [head, body]
    shown += group
    return [shown, *(nodes.paragraph("", note, classes=["table-note"]) for note in table.notes if note)]


def text_nodes(text: str) -> list[nodes.Node]:
    """Return text in which single backticks mark code; options like --out are code, too.

    Example:
        >>> [str(node) for node in text_nodes("see `liere train` and --out")]
        ['see ', '<literal>liere train</literal>', ' and ', '<literal>--out</literal>']
    """
    parts = OPTION.sub(r"`\g<0>`", text).split("`")
    return [nodes.literal("", part) if number % 2 else nodes.Text(part) for number, part in enumerate(parts) if part]


def _head_rows(columns: list[Column]) -> list[nodes.row]:
    """Return one row of names, or two where columns have groups."""
    if not any(column.group for column in columns):
        return [_joined([_entry(column.name, column) for column in columns])]
    first, second = list[nodes.entry](), list[nodes.entry]()
    for group, members in groupby(columns, key=lambda column: column.group):
        own = list(members)
        if group:
            first.append(_entry(group, Column(group, numeric=False), morecols=len(own) - 1, classes=["group"]))
            second += [_entry(column.name, column) for column in own]
        else:
            first += [_entry(column.name, column, morerows=1) for column in own]
    return [_joined(first), _joined(second)]


def _row(cells: list[Cell], table: Table) -> nodes.row:
    entries = []
    for place, (cell, column) in enumerate(zip(cells, table.columns, strict=True)):
        kind = "number" if column.numeric else "head" if place < table.heads else "text"
        entry = nodes.entry(classes=[kind])
        paragraph = nodes.paragraph()
        paragraph += [nodes.strong("", cell.value)] if cell.strong else text_nodes(cell.value)
        if cell.detail:
            paragraph += [nodes.Text(" "), nodes.inline("", f"({cell.detail})", classes=["detail"])]
        entry += paragraph
        entries.append(entry)
    return _joined(entries)


def _entry(text: str, column: Column, *, classes: list[str] | None = None, **spans: int) -> nodes.entry:
    entry = nodes.entry(classes=(classes or []) + ["number"] * column.numeric, **spans)
    entry += nodes.paragraph("", text)
    return entry


def _joined(entries: list[nodes.entry]) -> nodes.row:
    row = nodes.row()
    row += entries
    return row
