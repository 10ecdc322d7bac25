"""Plain-text tables."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["text_table"]


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> list[str]:
    """Return the lines of a table; the first `left` columns are aligned to the left, the others to the right.

    Example:
        >>> for line in text_table(["size", "cost"], [["small", "1.5"], ["large", "20.0"]]):
        ...     print(line)
        size   cost
        -----------
        small   1.5
        large  20.0
    """
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    head = line(header)
    rule = "-" * max(len(head), *(len(line(row)) for row in rows)) if rows else "-" * len(head)
    return [head, rule, *map(line, rows)]
