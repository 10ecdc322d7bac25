"""Signal handling while there is nothing to save: Ctrl-C, SIGTERM and SIGHUP end the program with one line."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

from liere_command.processes import is_first_process, is_under_torchrun

__all__ = [
    "SIGNALS",
    "SignalInterrupt",
    "block_signals",
    "call_on_leaving",
    "calling_on_leaving",
    "hold_signals",
    "interrupt_on_signals",
    "leave_on_signals",
    "leave_silently",
    "release_signals",
    "say_on_leaving",
    "unblock_signals",
    "use_default_signals",
]

# SIGHUP is sent when a terminal is closed or a connection is lost.
SIGNALS = (signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ()))


class SignalInterrupt(KeyboardInterrupt):
    """What `interrupt_on_signals` raises.

    Attributes:
        signal: Number of the signal.
    """

    def __init__(self, signal: int) -> None:
        super().__init__()
        self.signal = signal


def _before_its_work() -> str:
    return " before any work was done: nothing to save, run the same command again"


_hint: Callable[[], str] = _before_its_work
_calls: list[Callable[[], object]] = []  # functions to call before a signal ends the program
_are_blocked = False  # by `leave_on_signals`


def leave_on_signals() -> None:
    """Make the first process of a run exit at the first signal; in the other processes, block signals.

    Those exit when the first process does, or stop together with it: see `liere.training.stop_requests`. Processes of
    `torchrun` all exit, because that is how it ends them. A signal that was ignored when the program started is still
    ignored.
    """
    global _are_blocked
    # Called last, since it is registered first: then Python takes down its modules, with the default effect of signals.
    atexit.register(_ignore)
    if is_first_process() or is_under_torchrun():
        _catch()
    elif hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        _are_blocked = True


def release_signals(world_size: int) -> None:
    """Undo the blocking of `leave_on_signals` once it is known that this process is the only one of its run."""
    global _are_blocked
    if _are_blocked and world_size == 1:
        _catch()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        _are_blocked = False


def _catch() -> None:
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)


def say_on_leaving(hint: Callable[[], str]) -> None:
    """Set the function that returns the text after "stopped by SIGTERM" when a signal ends the program."""
    global _hint
    _hint = hint


def leave_silently(code: int) -> None:
    """Make signals end the program with the exit code of its finished work, instead of interrupting Python's exit."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, frame: _exit(code))


def call_on_leaving(function: Callable[[], object]) -> None:
    """Call a function, which may remove temporary files, if a signal ends the program without Python's own exit."""
    _calls.append(function)


@contextlib.contextmanager
def calling_on_leaving(function: Callable[[], object]) -> Iterator[None]:
    """Do what `call_on_leaving` does, during a block."""
    call_on_leaving(function)
    try:
        yield
    finally:
        _calls.remove(function)


def use_default_signals() -> None:
    """Undo `leave_on_signals`: Ctrl-C raises `KeyboardInterrupt`, and other signals end the process."""
    for number in SIGNALS:
        if signal.getsignal(number) is _leave:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@contextlib.contextmanager
def block_signals() -> Iterator[None]:
    """Block signals in the processes that are started in a block, until they can handle them: they inherit the mask.

    While Python is starting, a signal would end them or print a traceback. In this process, signals are delayed.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def unblock_signals() -> Iterator[None]:
    """Receive signals in a block that handles them, in a process that `block_signals` shields before and after it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # a signal that is waiting arrives here
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def hold_signals() -> Iterator[None]:
    """Delay signals until the end of a block that must not be interrupted."""
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


@contextlib.contextmanager
def interrupt_on_signals() -> Iterator[None]:
    """Raise `SignalInterrupt` in a block at SIGTERM and SIGHUP, so that they clean up as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS if number != signal.SIGINT}
    caught = {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}
    try:
        for number in caught:
            signal.signal(number, _interrupt)
        yield
    finally:
        for number, handler in caught.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _interrupt(number: int, frame: Any) -> None:
    raise SignalInterrupt(number)


def _leave(number: int, frame: Any) -> None:
    # Exceptions may be caught by libraries, and buffered streams may be in use. Exiting at once is safe, because all
    # files are written atomically.
    with contextlib.suppress(OSError):  # the terminal may be gone
        is_silent = is_under_torchrun() and not is_first_process()
        os.write(2, b"" if is_silent else f"liere: stopped by {signal.Signals(number).name}{_hint()}\n".encode())
    _exit(128 + number)


def _ignore() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _exit(code: int) -> None:
    _ignore()
    for function in list(_calls):
        with contextlib.suppress(Exception):  # nothing may keep the program from ending
            function()
    os._exit(code)
