"""Progress of long tasks: one line that is rewritten on a terminal, an occasional line elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable

from liere.errors import visible
from liere.terminal.messages import warn, write_or_leave

__all__ = ["ProgressLine"]

SECONDS_BETWEEN_LINES = 30.0
SECONDS_BETWEEN_CHANGES = 0.1  # on a terminal
CLEAR = "\r\x1b[K"


class ProgressLine:
    """A progress line on standard error.

    Args:
        say: Function that receives an occasional line if standard error is not a terminal; by default, the lines are
            written to standard error.
        is_shown: Whether anything is shown at all.

    Example:
        >>> line = ProgressLine(print)
        >>> line.show("race: 1 of 9", now=True)
        race: 1 of 9
        >>> line.show("race: 2 of 9")
        >>> line.clear()
    """

    def __init__(self, say: Callable[[str], None] | None = None, *, is_shown: bool = True) -> None:
        self.say, self.is_shown = say or warn, is_shown
        self.is_terminal = sys.stderr.isatty()
        self.last_line = time.monotonic()
        self.last_change = 0.0

    def show(self, line: str, *, now: bool = False) -> None:
        """Replace the last line; `now` shows the line even if the last one is recent."""
        if not self.is_shown:
            return
        if self.is_terminal:
            if not now and time.monotonic() - self.last_change < SECONDS_BETWEEN_CHANGES:
                return
            self.last_change = time.monotonic()
            width = shutil.get_terminal_size((120, 24)).columns
            write_or_leave(sys.stderr, CLEAR + visible(line)[: width - 1])
        elif now or time.monotonic() - self.last_line > SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            self.say(line)

    def clear(self) -> None:
        """Remove the last line, to make room for other output."""
        if self.is_shown and self.is_terminal:
            write_or_leave(sys.stderr, CLEAR)
