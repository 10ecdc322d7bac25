"""Stopping a run between two steps: why, and how signals ask for it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from liere_command.signals import SIGNALS

__all__ = ["StopRequest", "StoppedError", "shield_new_processes", "stop_on_signals"]


class StoppedError(Exception):
    """A run was stopped before its end. What it has done is saved, if it has done anything."""


@dataclass
class StopRequest:
    """Why a run should stop after this step, if it should.

    Attributes:
        signal: The signal that asked for it.
        further_steps: Stop after so many; None for the run's end.
        parent: Stop when this can be read, as `local_processes.Slot` has it; None to live on without a parent.
    """

    signal: int | None = None
    further_steps: int | None = None
    parent: Connection | None = None

    def reason(self, steps: int) -> str | None:
        """Return why to stop after so many steps of this process, or None to go on."""
        if self.signal is not None:
            return f"by {signal.Signals(self.signal).name}"
        if self.parent is not None and self.parent.poll():
            return "because its parent is gone"
        if self.further_steps is not None and steps >= self.further_steps:
            return "as asked"
        return None


@contextmanager
def stop_on_signals(request: StopRequest) -> Iterator[None]:
    """Turn the first of each signal, Ctrl-C say, into a request; a second one does what it always does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}
    # What was started to ignore a signal, in the background say, goes on ignoring it.
    before = {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}

    def ask(number: int, frame: Any) -> None:
        request.signal = number
        signal.signal(number, before[number])

    for number in before:
        signal.signal(number, ask)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # those that `leave_on_signals` has kept
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def shield_new_processes(trainer: Any) -> None:
    """Have processes that Lightning starts keep signals until they can answer: see `leave_on_signals`.

    While Python itself is starting, a signal would end them, and with them the run.
    """
    launcher = getattr(trainer.strategy, "launcher", None)
    start = getattr(launcher, "_call_children_scripts", None)
    if start is None or not hasattr(signal, "pthread_sigmask"):
        return

    def start_shielded() -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # new processes inherit it
        try:
            start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    launcher._call_children_scripts = start_shielded  # type: ignore[union-attr]
