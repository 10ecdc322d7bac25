"""Tables of text, and number formats for their cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["NOTHING", "Cell", "Column", "Table", "p_value", "percent"]


class Cell(NamedTuple):
    """A table cell.

    Attributes:
        value: The main text.
        detail: A qualification such as an interval, shown in parentheses.
        strong: Whether to show it in bold.
    """

    value: str
    detail: str = ""
    strong: bool = False

    @property
    def text(self) -> str:
        """The cell as one line of text."""
        return f"{self.value} ({self.detail})" if self.detail else self.value


NOTHING = Cell("–")
"""A cell for a value that was not measured."""


class Column(NamedTuple):
    """A column header.

    Attributes:
        name: Name of the column.
        group: Header shared with adjacent columns; empty for none.
        numeric: Whether the column contains numbers, which are right-aligned.
    """

    name: str
    group: str = ""
    numeric: bool = True

    @property
    def text(self) -> str:
        """The header as one line of text."""
        return f"{self.group}, {self.name}" if self.group else self.name


@dataclass(frozen=True)
class Table:
    """A table; the first `heads` cells of each row are row headers.

    Attributes:
        title: What the table shows.
        columns: One header per column.
        rows: One cell per column in each row.
        keys: The encoding of each row, if rows are about encodings.
        heads: Number of row headers per row.
        notes: Sentences to show below the table.
    """

    title: str
    columns: list[Column]
    rows: list[list[Cell]]
    keys: list[str] = field(default_factory=list)
    heads: int = 1
    notes: list[str] = field(default_factory=list)

    @property
    def header(self) -> list[str]:
        """Column headers as text."""
        return [column.text for column in self.columns]

    @property
    def texts(self) -> list[list[str]]:
        """Cells as text."""
        return [[cell.text for cell in row] for row in self.rows]


def percent(share: float) -> str:
    """Return a fraction as a percentage with one decimal.

    Example:
        >>> percent(0.9985), percent(1.0)
        ('99.9', '100.0')
    """
    return f"{100 * share:.1f}"


def p_value(p: float) -> str:
    """Return a p-value with three decimals.

    Example:
        >>> p_value(0.0341), p_value(1e-4)
        ('0.034', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
