"""Tables of text as tables of the report, which the site shows."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise, takewhile

from liere.bench.table_parts import Table as BenchTable
from liere.report.table_cells import Cell, Column, Table

__all__ = ["bench_table", "cell", "markdown_tables", "plain_table", "with_seeds"]

DETAIL = re.compile(r"(?P<value>[^(\[]+?) (?P<detail>\(.+\)|\[.+\])")
NUMBER = re.compile(r"[+-]?[\d.,]+\*?( [G%])?")
TITLE = re.compile(r"\*\*(.+)\*\*")
RULE = re.compile(r"\|( -+:? \|)+")
ESCAPED = re.compile(r"\\(.)")


def cell(text: str, *, strong: bool = False) -> Cell:
    """Return a cell; what is in brackets at its end qualifies the rest.

    Example:
        >>> cell("99.1 (98.4, 100.0)"), cell("1.07 [0.95-1.12]").detail, cell("LieRE (dense)").value
        (Cell(value='99.1', detail='98.4, 100.0', strong=False), '0.95-1.12', 'LieRE (dense)')
    """
    found = DETAIL.fullmatch(text)
    if found is None or not NUMBER.fullmatch(found["value"]):
        return Cell(text, strong=strong)
    return Cell(found["value"], found["detail"][1:-1], strong)


def with_seeds(values: Iterable[float]) -> Cell:
    """Return a mean in percent, with every seed.

    Example:
        >>> with_seeds([0.5, 0.75]).text
        '62.5 (50.0, 75.0)'
    """
    seeds = list(values)
    each = ", ".join(f"{100 * value:.1f}" for value in seeds)
    return Cell(f"{100 * statistics.fmean(seeds):.1f}", each if len(seeds) > 1 else "")


def plain_table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[str]], *, heads: int = 1, notes: Sequence[str] = ()
) -> Table:
    """Return a table of texts; all but the first `heads` columns are numbers.

    A head like `paper, 108 px` is a column of a group if a neighbor belongs to the same group.
    """
    names = [tuple(head.split(", ", 1)) for head in header]
    shared = [len(name) == 2 for name in names]
    alike = [a[0] == b[0] and len(a) == len(b) == 2 for a, b in pairwise(names)]
    grouped = [
        own and (before or after) for own, before, after in zip(shared, [False, *alike], [*alike, False], strict=True)
    ]
    columns = [
        Column(name[1], name[0], place >= heads) if is_grouped else Column(head, "", place >= heads)
        for place, (name, head, is_grouped) in enumerate(zip(names, header, grouped, strict=True))
    ]
    cells = [[Cell(text) if place < heads else cell(text) for place, text in enumerate(row)] for row in rows]
    return Table(title, columns, cells, heads=heads, notes=list(notes))


def bench_table(table: BenchTable, *, heads: int = 1) -> Table:
    """Return a table of a benchmark; its legend in one paragraph."""
    return plain_table(table.title, table.header, table.rows, heads=heads, notes=[" ".join(table.legend)])


def markdown_tables(text: str) -> list[Table]:
    """Return the tables of a page that the project has written, by the titles above them.

    Example:
        >>> page = "**Accuracy**\\n\\n| encoding | ours |\\n| --- | ---: |\\n| LieRE (dense) | **1.5\\\\* (1-2)** |\\n"
        >>> [(table.title, table.texts) for table in markdown_tables(page)]
        [('Accuracy', [['LieRE (dense)', '1.5* (1-2)']])]
    """
    tables, title, lines = list[Table](), "", text.splitlines()
    for number, line in enumerate(lines):
        if found := TITLE.fullmatch(line):
            title = ESCAPED.sub(r"\1", found[1])
        elif RULE.fullmatch(line):
            body = [_split(row) for row in takewhile(bool, lines[number + 1 :])]
            numeric = [part.endswith(":") for part in _split(line)]
            table = plain_table(title, _split(lines[number - 1]), body, heads=numeric.count(False))
            tables.append(_marked(table))
    return tables


def _split(line: str) -> list[str]:
    return [part.strip() for part in line.strip("|").split(" | ")]


def _marked(table: Table) -> Table:
    """Return the table with Markdown's marks taken off its cells, and what was marked with them strong."""

    def read(part: Cell) -> Cell:
        found = TITLE.fullmatch(part.text)
        text = ESCAPED.sub(r"\1", found[1] if found else part.text)
        return cell(text, strong=found is not None)

    rows = [[read(part) for part in row] for row in table.rows]
    columns = [Column(ESCAPED.sub(r"\1", c.name), ESCAPED.sub(r"\1", c.group), c.numeric) for c in table.columns]
    return Table(table.title, columns, rows, heads=table.heads)
