"""Requests to stop a run between two steps, for example by a signal."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from liere_command.processes import is_under_torchrun
from liere_command.signals import SIGNALS

__all__ = ["StopRequest", "StoppedError", "stop_on_signals"]

REPEAT = 1.0  # seconds during which the same signal is not a second one


class StoppedError(Exception):
    """Raised when a run was stopped before its end; completed steps are saved."""


@dataclass
class StopRequest:
    """A request to stop a run early.

    Attributes:
        signal: Signal that requested it, if any.
        further_steps: Stop after this many steps; None for the end of the run.
        parent: Stop when this can be read, as set up by `liere.comparison.executors.local`; None for no parent.
    """

    signal: int | None = None
    further_steps: int | None = None
    parent: Connection | None = None

    def reason(self, steps: int) -> str | None:
        """Return the reason to stop after this many steps of this process, or None to continue."""
        if self.signal is not None:
            return f"by {signal.Signals(self.signal).name}"
        if self.parent is not None and self.parent.poll():
            return "because its parent is gone"
        if self.further_steps is not None and steps >= self.further_steps:
            return "as requested"
        return None

    def check(self) -> None:
        """Raise `StoppedError` if there is a reason to stop before the first step."""
        if reason := self.reason(0):
            raise StoppedError(reason)


@contextmanager
def stop_on_signals(request: StopRequest) -> Iterator[None]:
    """Turn the first of each signal, such as Ctrl-C, into a request; a second one has its usual effect.

    Many programs send a signal twice: `timeout` to its child and to its group, a shell whose terminal is closed as well
    as the terminal itself. So a second one counts only after a moment. It never does under `torchrun`, which passes on
    signals that a process may already have received with its group, and kills processes that do not end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}
    # Signals that are already ignored, for example in the background, stay ignored.
    before = {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}

    since: dict[int, float] = {}

    def ask(number: int, frame: Any) -> None:
        request.signal = number
        first = since.setdefault(number, time.monotonic())
        if time.monotonic() - first >= REPEAT and not is_under_torchrun():
            signal.signal(number, before[number])
            signal.raise_signal(number)

    for number in before:
        signal.signal(number, ask)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # blocked by `leave_on_signals`
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
