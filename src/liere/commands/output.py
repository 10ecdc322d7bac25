"""What commands write to the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from liere.errors import visible

__all__ = ["say", "show_progress", "table", "warn"]


def say(line: str = "") -> None:
    """Write a line, or several, to standard output, at once."""
    sys.stdout.write("\n".join(map(visible, line.split("\n"))) + "\n")
    sys.stdout.flush()


def warn(line: str) -> None:
    """Write a line to standard error, at once: one line, whatever names of files and other people's text are in it."""
    sys.stderr.write(visible(line) + "\n")
    sys.stderr.flush()


def show_progress(name: str, done: int, total: int) -> None:
    """Show on standard error how far a part of a long command is: a line that is rewritten, or else one a part."""
    if sys.stderr.isatty():
        ahead = f"{name}: {done} of {total}" if done < total else ""
        sys.stderr.write(f"\r\x1b[K{ahead}")
    elif done == 0:
        sys.stderr.write(f"{name}\n")
    sys.stderr.flush()


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> list[str]:
    """Return the lines of a table; the first `left` columns are aligned to the left, the others to the right.

    Example:
        >>> for line in table(["size", "cost"], [["small", "1.5"], ["large", "20.0"]]):
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
