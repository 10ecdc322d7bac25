"""Parts of a Markdown page: escaped text, tables, code blocks, collapsible sections."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

from liere.report.table_cells import Cell, Table

__all__ = ["escape", "fenced", "file_name", "folded", "link", "markdown_table"]


def escape(text: str) -> str:
    """Return text with Markdown's special characters escaped.

    Example:
        >>> print(escape("a|b <c> *d*"))
        a\\|b \\<c\\> \\*d\\*
    """
    return re.sub(r"([\\`*\[\]<>|#&~$]|(?<!\w)_|_(?!\w))", r"\\\1", " ".join(text.split()))


def markdown_table(table: Table) -> list[str]:
    """Return a table and its notes as separate paragraphs; an empty list if the table has no rows."""

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    def show(cell: Cell) -> str:
        return f"**{escape(cell.text)}**" if cell.strong else escape(cell.text)

    if not table.rows:
        return []
    rule = [("---:" if column.numeric else "---") for column in table.columns]
    lines = [line([escape(text) for text in table.header]), line(rule)]
    lines += [line([show(cell) for cell in row]) for row in table.rows]
    return ["\n".join(lines), *map(escape, table.notes)]


def file_name(caption: str) -> str:
    """Return the file name of the figure with a given caption.

    Example:
        >>> file_name("Learning curves")
        'learning-curves.png'
    """
    return re.sub(r"[^\w.]+", "-", caption.lower()).strip("-") + ".png"


def link(text: str, *path: str) -> str:
    """Return a link to a file next to the page, whose name may contain spaces and brackets.

    Example:
        >>> link("the file", "my report", "a.png")
        '[the file](my%20report/a.png)'
    """
    return f"[{escape(text)}]({quote('/'.join(path))})"


def folded(summary: str, body: str) -> str:
    """Return a collapsible section."""
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"


def fenced(language: str, text: str) -> str:
    """Return a code block whose fence is longer than any run of backticks in it."""
    fence = "`" * max([3, *(1 + len(ticks) for ticks in re.findall("`+", text))])
    return f"{fence}{language}\n{text}\n{fence}"
