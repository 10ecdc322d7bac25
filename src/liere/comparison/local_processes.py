"""Work in several processes at once, each with a log of its own."""

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

POLL = 0.5  # seconds between looks at the processes
PRELOADED = ("liere.evaluation.evaluate",)  # imported once; processes are copies of one that has it


@dataclass(frozen=True)
class Slot:
    """The place that a job has among those at work.

    Attributes:
        number: From 0 to the number of slots - 1.
        parent: Can be read once the process that started the jobs is gone: it is at its end then.
    """

    number: int
    parent: Connection


@dataclass(frozen=True)
class Job:
    """A piece of work.

    Attributes:
        name: What to call it.
        work: A function of a module that other processes can import.
        arguments: What it is called with; it gets its `Slot` as well, as the last one.
        log: File for what it prints; added to.
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
    """Run jobs, at most so many at a time, in order; when the caller is interrupted, wait for those that run to stop.

    Args:
        jobs: What to do.
        slots: How many processes at a time.
        watch: Told twice a second which jobs are running.
        ended: Told of each job that ended, with its exit code, negative for a signal.
    """
    method = "forkserver" if sys.platform == "linux" else "spawn"
    context: Any = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(list(PRELOADED))
    # Nothing is ever sent: the reading end notices when the writing end, which only this process has, is gone.
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
            process.terminate()  # asks it to save and stop
        for _, process in running.values():
            process.join()
        alive.close()


@contextmanager
def _without_main() -> Iterator[None]:
    """Keep a new process from executing the caller's script, which may start this very work, as its `__main__`."""
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
    # Loaders of this process start their workers as they would in any other.
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
            traceback.print_exc()  # while the log is open
            sys.exit(1)
