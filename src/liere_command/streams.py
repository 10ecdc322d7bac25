"""Standard streams that were closed when the program started, as by daemons and some schedulers."""

from __future__ import annotations

import os
import sys

__all__ = ["open_missing_streams"]


def open_missing_streams() -> None:
    """Connect closed standard streams (input, output, error) to the null device.

    Otherwise the next files to be opened would get their file descriptors, and messages for the terminal could be
    written into a checkpoint.
    """
    for number, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, errors="replace", closefd=False))  # noqa: SIM115  (stays open until exit)
