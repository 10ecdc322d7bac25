"""Execute runs in processes of this machine, one per GPU or core."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar

import torch

from liere.comparison.executors.contract import Ending, Executor, Session, Task
from liere.comparison.executors.fork_server import ForkServer
from liere.comparison.executors.work import work
from liere.machine import available_cores
from liere.runs.config import RunConfig
from liere.training.stop_requests import StopRequest

__all__ = ["LocalExecutor", "LocalSession"]

PRELOADED = ("liere.evaluation.evaluate",)  # imported once in the process that the others are forked from


@dataclass(frozen=True)
class LocalExecutor(Executor):
    """Execute each run in a process of its own on this machine."""

    name: ClassVar[str] = "local"
    is_here: ClassVar[bool] = True

    def slots(self, config: RunConfig, jobs: int | None, runs: int) -> int:
        """Return how many runs are executed at the same time: one per GPU, or one per core without a GPU."""
        return min(jobs or _default_slots(config), runs)

    def threads(self, config: RunConfig, slots: int | None) -> int:
        """Return the number of threads of a run: an equal share of the cores."""
        return max(available_cores() // (slots or 1), 1)

    def open(self, folder: Path, slots: int | None) -> LocalSession:
        """Return a session of this many processes."""
        return LocalSession(slots or 1)

    def describe(self, folder: Path, configs: Sequence[RunConfig], slots: int | None) -> list[str]:
        """Return a line on the processes."""
        number = "one process" if slots == 1 else f"{slots} processes at a time"
        return [f"Runs are executed on this machine, {number}."]


class LocalSession(Session):
    """Processes of this machine.

    Args:
        slots: Number of processes at a time.
    """

    def __init__(self, slots: int) -> None:
        self.server = ForkServer(PRELOADED)
        self.context = self.server.context
        # Nothing is ever sent: the reading end reports end of file once this process, the only writer, is gone.
        self.parent, self.alive = self.context.Pipe(duplex=False)
        self.waiting: list[Task] = []
        self.running: dict[int, tuple[Task, Any]] = {}
        self.free = list(range(slots))

    def submit(self, tasks: Sequence[Task]) -> None:
        """Queue tasks, and start as many as there is room for."""
        self.waiting += tasks
        while self.waiting and self.free:
            slot, task = self.free.pop(0), self.waiting.pop(0)
            process = self.context.Process(target=_work, args=(task, slot, self.parent), name=task.name)
            with _without_main():
                self.server.start(process)
            self.running[slot] = (task, process)

    def active(self) -> list[Task]:
        """Return the tasks that have a process."""
        return [task for task, _ in self.running.values()]

    def ended(self) -> list[Ending]:
        """Return the tasks whose process has ended, and start others."""
        endings = []
        for slot, (task, process) in list(self.running.items()):
            if not process.is_alive():
                process.join()
                del self.running[slot]
                self.free.append(slot)
                code = process.exitcode  # negative after a signal
                endings.append(Ending(task.name, f"with exit code {code}" if code else None, task.log))
        self.submit([])
        return endings

    def cancel(self) -> None:
        """Ask all processes to save and stop, and wait for them."""
        self.waiting = []
        for _, process in self.running.values():
            process.terminate()  # a request to save and stop
        for _, process in self.running.values():
            process.join()
        self.running = {}

    def close(self) -> None:
        """Close the pipe, and stop the process that others were forked from."""
        self.alive.close()
        self.parent.close()
        self.server.stop()


def _default_slots(config: RunConfig) -> int:
    if config.hardware.accelerator == "cpu":
        return available_cores()
    return torch.cuda.device_count() or (1 if torch.backends.mps.is_available() else available_cores())


@contextmanager
def _without_main() -> Iterator[None]:
    """Keep new processes from importing the caller's script as `__main__`, which might start the same runs again."""
    main: Any = sys.modules["__main__"]
    before = {name: getattr(main, name) for name in ("__file__", "__spec__") if hasattr(main, name)}
    main.__file__ = main.__spec__ = None
    try:
        yield
    finally:
        del main.__file__, main.__spec__
        for name, value in before.items():
            setattr(main, name, value)


def _work(task: Task, slot: int, parent: Connection) -> None:
    # Data loaders in this process should start workers with the default method.
    multiprocessing.set_start_method(None, force=True)
    if torch.cuda.device_count() > 1:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        devices = visible.split(",") if visible else [str(device) for device in range(torch.cuda.device_count())]
        os.environ["CUDA_VISIBLE_DEVICES"] = devices[slot % len(devices)]
    sys.exit(work(task, StopRequest(parent=parent), _ending_with(parent)))


@contextmanager
def _ending_with(parent: Connection) -> Iterator[None]:
    """Exit immediately if the parent process ends: training handles that itself, evaluation has nothing to save."""
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(0.5):
            if parent.poll():  # the parent's end of the pipe is closed
                os._exit(1)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()
