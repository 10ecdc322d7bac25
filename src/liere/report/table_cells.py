"""Tables of text, and how numbers are written in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["NOTHING", "Cell", "Column", "Table", "p_value", "percent"]


class Cell(NamedTuple):
    """A cell.

    Attributes:
        value: What it says.
        detail: What qualifies it, such as an interval; written in brackets.
        strong: Whether it is to be marked.
    """

    value: str
    detail: str = ""
    strong: bool = False

    @property
    def text(self) -> str:
        """The cell in one line."""
        return f"{self.value} ({self.detail})" if self.detail else self.value


NOTHING = Cell("–")
"""What was not measured."""


class Column(NamedTuple):
    """The head of a column.

    Attributes:
        name: What it holds.
        group: What it and its neighbors have in common.
        numeric: Whether it holds numbers, which stand to the right.
    """

    name: str
    group: str = ""
    numeric: bool = True

    @property
    def text(self) -> str:
        """The head in one line."""
        return f"{self.group}, {self.name}" if self.group else self.name


@dataclass(frozen=True)
class Table:
    """Rows of cells under their columns; the first `heads` cells of a row say what it is about.

    Attributes:
        title: What it shows.
        columns: One head a column.
        rows: One cell a column.
        keys: The encoding that each row is about, where it is about one.
        heads: How many cells name the row.
        notes: Sentences to read below it.
    """

    title: str
    columns: list[Column]
    rows: list[list[Cell]]
    keys: list[str] = field(default_factory=list)
    heads: int = 1
    notes: list[str] = field(default_factory=list)

    @property
    def header(self) -> list[str]:
        """Heads of the columns as text."""
        return [column.text for column in self.columns]

    @property
    def texts(self) -> list[list[str]]:
        """Cells as text."""
        return [[cell.text for cell in row] for row in self.rows]


def percent(share: float) -> str:
    """Return a share in percent, to one decimal.

    Example:
        >>> percent(0.9985), percent(1.0)
        ('99.9', '100.0')
    """
    return f"{100 * share:.1f}"


def p_value(p: float) -> str:
    """Return a p-value to three decimals.

    Example:
        >>> p_value(0.0341), p_value(1e-4)
        ('0.034', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
