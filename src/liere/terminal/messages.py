"""What commands write to the terminal."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Any

from liere.errors import visible

__all__ = ["say", "show_progress", "table", "tell", "warn"]

NO_READER = {errno.EIO, errno.EPIPE}  # of a terminal that was closed, of a program that has ended


def say(line: str = "") -> None:
    """Write a line, or several, to standard output, at once."""
    sys.stdout.write("\n".join(map(visible, line.split("\n"))) + "\n")
    sys.stdout.flush()


def tell(line: str) -> None:
    """Write a line about what goes on to standard output, at once; where that cannot be, the work goes on without."""
    _write(sys.stdout, line)


def warn(line: str) -> None:
    """Write a line to standard error, at once; where that cannot be, the work goes on without."""
    _write(sys.stderr, line)


def _write(stream: Any, line: str) -> None:
    """Write one line, whatever names of files and other people's text are in it."""
    try:
        stream.write(visible(line) + "\n")
        stream.flush()
    except OSError as error:
        if error.errno in NO_READER:  # what is left would be written, and fail, at the end of the program
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


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
