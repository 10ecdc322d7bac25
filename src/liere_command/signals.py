"""What Ctrl-C and SIGTERM do while there is nothing to save: end the program at once, with one line."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from typing import Any

from liere_command.processes import is_first_process

__all__ = ["SIGNALS", "leave_on_signals", "say_on_leaving", "use_default_signals"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def _before_its_work() -> str:
    return " before its work began: nothing to save, run the same command again"


_hint: Callable[[], str] = _before_its_work


def leave_on_signals() -> None:
    """Have the first process of a run end at the first signal; the others keep signals for later.

    Those are ended by the first process where it ends, and otherwise stop together with it: see
    `liere.training.survival`. A signal that the program was started to ignore is still ignored.
    """
    if is_first_process():
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _leave)
    elif hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def say_on_leaving(hint: Callable[[], str]) -> None:
    """Set what returns the words after "stopped by SIGTERM" when a signal ends the program."""
    global _hint
    _hint = hint


def use_default_signals() -> None:
    """Undo `leave_on_signals`: Ctrl-C raises `KeyboardInterrupt`, and SIGTERM ends the process."""
    defaults: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    for number, default in defaults.items():
        if signal.getsignal(number) is _leave:
            signal.signal(number, default)
    if not is_first_process() and hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _leave(number: int, frame: Any) -> None:
    # Neither exceptions, which libraries catch, nor buffered streams, which may be in use: files are written so that
    # a program can end at any moment.
    with contextlib.suppress(OSError):  # of a terminal that is gone
        os.write(2, f"liere: stopped by {signal.Signals(number).name}{_hint()}\n".encode())
    os._exit(128 + number)
