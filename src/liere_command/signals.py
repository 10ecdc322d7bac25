"""What Ctrl-C, SIGTERM and SIGHUP do while there is nothing to save: end the program at once, with one line."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

from liere_command.processes import is_first_process

__all__ = ["SIGNALS", "hold_signals", "leave_on_signals", "say_on_leaving", "use_default_signals"]

# SIGHUP comes when a terminal is closed or a connection is lost.
SIGNALS = (signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ()))


def _before_its_work() -> str:
    return " before its work began: nothing to save, run the same command again"


_hint: Callable[[], str] = _before_its_work


def leave_on_signals() -> None:
    """Have the first process of a run end at the first signal; the others keep signals for later.

    Those are ended by the first process where it ends, and otherwise stop together with it: see
    `liere.training.stop_requests`. A signal that the program was started to ignore is still ignored.
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
    """Undo `leave_on_signals`: Ctrl-C raises `KeyboardInterrupt`, and the others end the process."""
    for number in SIGNALS:
        if signal.getsignal(number) is _leave:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    if not is_first_process() and hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


@contextlib.contextmanager
def hold_signals() -> Iterator[None]:
    """Have signals wait for the end of what must not be left halfway."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}
    held = {number: handler for number, handler in handlers.items() if handler not in (signal.SIG_IGN, None)}
    for number in held:
        signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
        for number in came:
            os.kill(os.getpid(), number)


def _leave(number: int, frame: Any) -> None:
    # Neither exceptions, which libraries catch, nor buffered streams, which may be in use: files are written so that
    # a program can end at any moment.
    with contextlib.suppress(OSError):  # of a terminal that is gone
        os.write(2, f"liere: stopped by {signal.Signals(number).name}{_hint()}\n".encode())
    os._exit(128 + number)
