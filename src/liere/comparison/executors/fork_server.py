"""The process that the processes of a comparison are forked from: it has imported everything, and blocks signals."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Sequence
from multiprocessing import resource_tracker
from typing import Any

from liere_command.signals import block_signals

__all__ = ["ForkServer"]


class ForkServer:
    """Starts processes in which signals are blocked until they handle them.

    On Linux they are forked from a process in which signals are blocked as well. Python has only one such process per
    program, so it is stopped in the end: what the program itself starts later must not ignore signals.

    Args:
        preload: Modules that it imports first.

    Attributes:
        context: The context of `multiprocessing` with which to create processes.
    """

    def __init__(self, preload: Sequence[str]) -> None:
        self.context: Any = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
        self._is_own, self._before = False, None
        if sys.platform == "linux":
            server = _the_server()
            self._is_own, self._before = server._forkserver_pid is None, server._preload_modules
            self.context.set_forkserver_preload(list(preload))

    def start(self, process: Any) -> None:
        """Start a process of the context."""
        if os.name == "posix":
            resource_tracker.ensure_running()  # otherwise `start` does this, which unblocks signals
        with block_signals():
            process.start()

    def stop(self) -> None:
        """Stop the process that others were forked from, unless the program had started it before."""
        if not self._is_own:
            return
        server = _the_server()
        if server._forkserver_pid is not None:
            os.kill(server._forkserver_pid, signal.SIGKILL)  # asked to stop, it waits for all that know its pipe
        server._stop()
        self.context.set_forkserver_preload(self._before)


def _the_server() -> Any:
    from multiprocessing.forkserver import _forkserver

    return _forkserver
