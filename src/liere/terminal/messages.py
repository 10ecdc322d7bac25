"""What commands write to the terminal."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

from liere.errors import visible

__all__ = ["say", "tell", "warn", "write_or_leave"]

NO_READER = {errno.EIO, errno.EPIPE}  # of a terminal that was closed, of a program that has ended


def say(line: str = "") -> None:
    """Write a line, or several, to standard output, at once."""
    sys.stdout.write("\n".join(map(visible, line.split("\n"))) + "\n")
    sys.stdout.flush()


def tell(line: str) -> None:
    """Write a line about what goes on to standard output, at once; where nobody reads it, the work goes on."""
    write_or_leave(sys.stdout, visible(line) + "\n")


def warn(line: str) -> None:
    """Write a line to standard error, at once; where nobody reads it, the work goes on."""
    write_or_leave(sys.stderr, visible(line) + "\n")


def write_or_leave(stream: Any, text: str) -> None:
    """Write text to a stream at once; where nobody reads it any more, later text goes nowhere."""
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        if error.errno in NO_READER:  # what is left would be written, and fail, at the end of the program
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
