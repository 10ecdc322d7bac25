"""A terminal for a program that is attacked."""

from __future__ import annotations

import os
import pty
import select
import threading
from pathlib import Path

__all__ = ["Terminal"]


class Terminal:
    """A pseudo-terminal that copies its output to a file, accepts key presses, and can be closed.

    Attributes:
        path: Its path, for programs that open it.
        end: The program's end, for programs that inherit it.
    """

    def __init__(self) -> None:
        self._keys, self.end = pty.openpty()
        self.path = os.ttyname(self.end)
        self._is_closing = threading.Event()
        self._thread: threading.Thread | None = None

    def show(self, log: Path) -> None:
        """Start copying its output to a file."""
        self._thread = threading.Thread(target=self._copy, args=(log,), daemon=True)
        self._thread.start()

    def press_ctrl_c(self) -> None:
        """Send Ctrl-C to the program in the foreground."""
        os.write(self._keys, b"\x03")

    def close(self) -> None:
        """Copy what was printed so far, and close it for all programs that use it."""
        if not self._is_closing.is_set():
            self._is_closing.set()
            if self._thread:
                self._thread.join()
            os.close(self._keys)
            os.close(self.end)

    def _copy(self, log: Path) -> None:
        with log.open("ab", buffering=0) as file:
            while True:
                is_last = self._is_closing.is_set()
                if select.select([self._keys], [], [], 0 if is_last else 0.05)[0]:
                    file.write(os.read(self._keys, 65536))
                elif is_last:
                    break
