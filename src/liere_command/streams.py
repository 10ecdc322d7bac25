"""Standard streams that whoever started the program has closed, as daemons and some schedulers do."""

from __future__ import annotations

import os
import sys

__all__ = ["open_missing_streams"]


def open_missing_streams() -> None:
    """Open what is missing of standard input, output and error to nowhere.

    Otherwise Python has no stream to write to, and the next files to be opened take their places: what is meant for
    the terminal would be written into a checkpoint.
    """
    for number, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, errors="replace", closefd=False))  # noqa: SIM115  (to the end)
