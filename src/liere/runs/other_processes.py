"""What a process of a distributed run does about the others: protect them while they start, notice that they end."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from liere.runs.run import Run
from liere_command.signals import block_signals, calling_on_leaving

__all__ = ["ending_with_new_processes", "name_lost_processes", "shield_new_processes"]

LOST = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "DistNetworkError")
"""Parts of torch's errors about a process that has ended."""


def shield_new_processes(trainer: Any) -> None:
    """Block signals in processes that Lightning starts until they can handle them: see `leave_on_signals`."""

    def start_shielded(start: Callable[[], None]) -> None:
        with block_signals():
            start()

    _change_start(trainer, start_shielded)


@contextmanager
def ending_with_new_processes(trainer: Any, run: Run, remedy: str) -> Iterator[None]:
    """Exit with one line when a process that Lightning starts fails or is killed; Lightning would kill this one.

    If a signal ends this process, kill the others: they would report that they have lost it. Only for work that has
    nothing to save.

    Args:
        trainer: The trainer.
        run: The run.
        remedy: How to continue, as the end of the sentence.
    """
    is_over = threading.Event()
    with contextlib.ExitStack() as stack:

        def start_watched(start: Callable[[], None]) -> None:
            start()
            stack.enter_context(calling_on_leaving(is_over.set))
            for process in trainer.strategy.launcher.procs:
                stack.enter_context(calling_on_leaving(process.kill))
                threading.Thread(target=_end_with, args=(process, is_over, _lost(run, remedy)), daemon=True).start()

        _change_start(trainer, start_watched)
        try:
            yield
        finally:
            is_over.set()


def _change_start(trainer: Any, change: Callable[[Callable[[], None]], None]) -> None:
    """Make Lightning call a function with the one that starts other processes, if it is going to start any."""
    launcher = getattr(trainer.strategy, "launcher", None)
    start = getattr(launcher, "_call_children_scripts", None)
    if start is not None:
        launcher._call_children_scripts = partial(change, start)  # type: ignore[union-attr]


def _end_with(process: subprocess.Popen[bytes], is_over: threading.Event, line: str) -> None:
    if process.wait() and not is_over.is_set():
        with contextlib.suppress(OSError):  # the terminal may be gone
            os.write(2, f"liere: error: {line}\n".encode())
        os._exit(2)


@contextmanager
def name_lost_processes(run: Run, remedy: str) -> Iterator[None]:
    """Turn errors of torch about a lost process into one line.

    Args:
        run: The run.
        remedy: How to continue, as the end of the sentence.

    Raises:
        ConnectionError: If another process has ended.
    """
    try:
        yield
    except RuntimeError as error:
        said = f"{type(error).__name__}: {error}"
        if run.config.hardware.world_size == 1 or not any(text in said for text in LOST):
            raise
        raise ConnectionError(_lost(run, remedy)) from error


def _lost(run: Run, remedy: str) -> str:
    return f"{run.folder.name}: another process of the run has ended, see its message; {remedy}"
