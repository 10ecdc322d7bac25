"""Run jobs in parallel processes, each with its own log."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from liere.errors import UserError

__all__ = ["Job", "Slot", "run_jobs"]

POLL = 0.5  # seconds between checks of the processes
PRELOADED = ("liere.evaluation.evaluate",)  # imported once in the process that the others are forked from


@dataclass(frozen=True)
class Slot:
    """The slot that a job occupies.

    Attributes:
        number: From 0 to the number of slots - 1.
        parent: A pipe that becomes readable (at end of file) when the process that started the jobs ends.
    """

    number: int
    parent: Connection


@dataclass(frozen=True)
class Job:
    """A unit of work.

    Attributes:
        name: Name of the process.
        work: A function of a module that other processes can import.
        arguments: Arguments of `work`; the job's `Slot` is appended.
        log: File to which its output is appended.
    """

    name: str
    work: Callable[..., None]
    arguments: tuple[Any, ...]
    log: Path


def run_jobs(
    jobs: list[Job],
    *,
    slots: int,
    watch: Callable[[list[Job]], None],
    ended: Callable[[Job, int], None],
) -> None:
    """Run jobs in order, at most `slots` at a time; if interrupted, stop the active jobs and wait for them.

    Args:
        jobs: The jobs.
        slots: Number of parallel processes.
        watch: Called twice a second with the active jobs.
        ended: Called with each job that ended and its exit code, which is negative after a signal.
    """
    method = "forkserver" if sys.platform == "linux" else "spawn"
    context: Any = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(list(PRELOADED))
    # Nothing is ever sent: the reading end reports end of file once this process, the only writer, is gone.
    parent, alive = context.Pipe(duplex=False)
    waiting, running, free = list(jobs), dict[int, tuple[Job, Any]](), list(range(slots))
    try:
        while waiting or running:
            while waiting and free:
                slot, job = free.pop(0), waiting.pop(0)
                process = context.Process(target=_work, args=(job, Slot(slot, parent)), name=job.name)
                with _without_main():
                    process.start()
                running[slot] = (job, process)
            watch([job for job, _ in running.values()])
            time.sleep(POLL)
            for slot, (job, process) in list(running.items()):
                if not process.is_alive():
                    process.join()
                    del running[slot]
                    free.append(slot)
                    ended(job, process.exitcode)
    finally:
        for _, process in running.values():
            process.terminate()  # a request to save and stop
        for _, process in running.values():
            process.join()
        alive.close()


@contextmanager
def _without_main() -> Iterator[None]:
    """Keep new processes from importing the caller's script as `__main__`, which might start the same jobs again."""
    main: Any = sys.modules["__main__"]
    before = {name: getattr(main, name) for name in ("__file__", "__spec__") if hasattr(main, name)}
    main.__file__ = main.__spec__ = None
    try:
        yield
    finally:
        del main.__file__, main.__spec__
        for name, value in before.items():
            setattr(main, name, value)


def _work(job: Job, slot: Slot) -> None:
    # Data loaders in this process should start workers with the default method.
    multiprocessing.set_start_method(None, force=True)
    job.log.parent.mkdir(parents=True, exist_ok=True)
    with job.log.open("a") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        sys.stdout = sys.stderr = log
        try:
            job.work(*job.arguments, slot)
        except UserError as error:
            log.write(f"error: {error}\n")
            log.flush()
            sys.exit(1)
        except Exception:
            traceback.print_exc()  # here, because the log is closed afterwards
            sys.exit(1)
