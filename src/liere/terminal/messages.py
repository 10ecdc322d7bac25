"""Messages of commands to standard output and standard error."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

from liere.errors import visible

__all__ = ["say", "tell", "warn", "write_or_leave"]

NO_READER = {errno.EIO, errno.EPIPE}  # the terminal was closed, or the reading program has ended


def say(line: str = "") -> None:
    """Write one or more lines to standard output and flush."""
    sys.stdout.write("\n".join(map(visible, line.split("\n"))) + "\n")
    sys.stdout.flush()


def tell(line: str) -> None:
    """Write a progress line to standard output and flush; a closed stream is not an error."""
    write_or_leave(sys.stdout, visible(line) + "\n")


def warn(line: str) -> None:
    """Write a line to standard error and flush; a closed stream is not an error."""
    write_or_leave(sys.stderr, visible(line) + "\n")


def write_or_leave(stream: Any, text: str) -> None:
    """Write text to a stream and flush; if the reader is gone, discard this and later text."""
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        if error.errno in NO_READER:  # otherwise the flush at exit would fail
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
