"""Requests to stop a run between two steps, for example by a signal."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from liere_command.processes import is_first_process, is_under_torchrun
from liere_command.signals import SIGNALS

__all__ = ["StopRequest", "StoppedError", "stop_on_signals"]

REPEAT = 1.0  # seconds during which the same signal does not count again
INSISTENT = 3  # the same signal this many times ends the program without saving


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
    """Turn signals, such as Ctrl-C, into a request; a third one of the same kind has its usual effect.

    Many programs send a signal twice: `timeout` to its child and to its group, a shell whose terminal is closed as well
    as the terminal itself. Python may handle the second one seconds later, after a long operation of torch, so that it
    looks like somebody who insists; a third one does not. Under `torchrun`, no number of signals counts: it passes on
    signals that a process may already have received with its group, and kills processes that do not end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}
    # Signals that are already ignored, for example in the background, stay ignored.
    before = {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}
    counted: dict[int, list[float]] = {number: [] for number in before}

    def ask(number: int, frame: Any) -> None:
        request.signal = number
        times, now = counted[number], time.monotonic()
        if is_under_torchrun() or (times and now - times[-1] < REPEAT):
            return
        times.append(now)
        if len(times) == INSISTENT - 1 and is_first_process():
            name = signal.Signals(number).name
            with suppress(OSError):  # the terminal may be gone
                os.write(2, f"liere: saving after this step; another {name} exits without saving\n".encode())
        elif len(times) == INSISTENT:
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
