"""A data loader whose worker processes ignore signals and exit with the training process."""

from __future__ import annotations

import atexit
import os
import re
import signal
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.queues import Queue
from multiprocessing.util import Finalize
from types import TracebackType
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, Sampler
from torch.utils.data._utils import signal_handling
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

from liere.data.batches import Draw
from liere.data.examples import Batch, ExampleSet
from liere.errors import UserError
from liere.files.reading import reason
from liere.terminal.messages import warn
from liere_command.signals import SIGNALS, block_signals

__all__ = ["LostWorkerError", "lost_workers", "make_loader"]

LOST = re.compile(r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) (.*)")
"""Message of torch when a worker has ended too soon."""
FULL = "Too many open files. Communication with the workers is no longer possible"
"""Message of torch when it cannot receive a batch because each takes some open files."""
NO_THREAD = "can't start new thread"
"""Message of Python when there are too many threads."""


class LostWorkerError(UserError, RuntimeError):
    """Raised when a worker process of a loader was killed or not started, for example because memory ran out."""


class _NotStartedError(RuntimeError):
    """Raised when a worker process could not be started; the message is the reason."""


@contextmanager
def lost_workers(remedy: str) -> Iterator[None]:
    """Turn the error about a worker that was killed or could not be started into one line.

    Args:
        remedy: How to continue, as the end of the sentence.

    Raises:
        LostWorkerError: If a worker was killed or could not be started.
    """
    try:
        yield
    except RuntimeError as error:
        how = _find_loss(error)
        if how is None:
            raise
        raise LostWorkerError(f"a data loader worker {how}: use fewer hardware.workers, and {remedy}") from error


def _find_loss(error: BaseException | None) -> str | None:
    """Return what happened to a worker, if that is why an error was raised: Lightning may have replaced the first."""
    while error is not None:
        if isinstance(error, _NotStartedError):
            return f"could not be started ({error})"
        if FULL in str(error):
            return "could not be reached (too many open files, see ulimit -n)"
        if found := LOST.search(str(error)):
            how = found[1].rstrip(". ").replace("is killed", "was killed")
            return f"{how}, which often means that memory ran out"
        error = error.__cause__ or error.__context__
    return None


class _WholeBatches(Dataset[Batch]):
    """A data set whose items are whole batches."""

    def __init__(self, data: ExampleSet) -> None:
        self.data = data

    def __getitem__(self, draw: Draw) -> Batch:
        return self.data.load(draw.indices, draw.bits)


def make_loader(
    data: ExampleSet, batches: Sampler[Draw], *, workers: int = 0, pin_memory: bool = False
) -> DataLoader[Batch]:
    """Return a loader of batches that does not use torch's global generator."""
    return _Loader(
        _WholeBatches(data),
        batch_size=None,
        sampler=batches,
        num_workers=workers,
        pin_memory=pin_memory,
        generator=torch.Generator().manual_seed(0),
        worker_init_fn=_prepare_worker if workers else None,
    )


class _Loader(DataLoader[Batch]):
    """A loader whose workers ignore signals from their very start."""

    def __iter__(self) -> Any:
        if not self.num_workers or not hasattr(signal, "pthread_sigmask"):
            return super().__iter__()
        with block_signals():
            batches: Any = super().__iter__()
        _end_at_exit(batches)
        return batches

    def _get_iterator(self) -> Any:
        return _Batches(self) if self.num_workers else super()._get_iterator()


class _Batches(_MultiProcessingDataLoaderIter):
    """Batches from workers, one of which may be killed: that is an error where its batch is missing, and nowhere else.

    torch would raise it in a signal handler, in the middle of whatever runs then: where Python can only print and
    ignore exceptions, or while a thread is being started, which fails in that thread as well. Without the handler,
    torch looks for lost workers whenever it waits for a batch for some seconds.
    """

    _shutdown = True  # until torch has set it: its destructor has nothing to end before

    def __init__(self, loader: _Loader) -> None:
        try:
            super().__init__(loader)
        except BaseException as error:
            self._kill_workers()
            if isinstance(error, OSError):  # too many processes or open files, or too little memory
                raise _NotStartedError(error.strerror or error) from error
            if isinstance(error, RuntimeError) and NO_THREAD in str(error):
                raise _NotStartedError(error) from error
            raise

    def _kill_workers(self) -> None:
        """Kill the workers that were started before another could not be: at exit, Python would wait for them."""
        self._shutdown = True
        for worker in getattr(self, "_workers", []):
            worker.kill()
            worker.join()

    def _reset(self, loader: _Loader, first_iter: bool = False) -> None:
        # torch calls this when the workers are known to its handler, and before it starts the threads that feed them.
        signal_handling._remove_worker_pids(id(self))  # type: ignore[attr-defined]  # of its C extension
        self._worker_pids_set = False
        super()._reset(loader, first_iter)

    def _next_data(self) -> Any:
        try:
            with _original_messages():
                return super()._next_data()
        except (ConnectionError, EOFError) as error:  # the worker died after announcing a batch
            pids = ", ".join(str(worker.pid) for worker in self._workers)
            raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly") from error


@contextmanager
def _original_messages() -> Iterator[None]:
    """Raise errors of workers with their own message: torch adds the traceback of the worker to it."""
    try:
        yield
    except (UserError, OSError, MemoryError) as error:
        _, is_of_worker, trace = str(error).partition(" in DataLoader worker process ")
        if not is_of_worker:
            raise
        raise type(error)(trace.strip().rpartition(f"{type(error).__name__}: ")[2]) from None


_WITH_WORKERS: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
"""Active loaders with the queues that end their workers: without a reference, queues could be collected first."""
_PREPARED = set[int]()  # ids of processes that have registered their exit handlers


def _end_at_exit(batches: Any) -> None:
    """End the workers when the program exits; Python itself would wait for a signal that they ignore."""
    _WITH_WORKERS[batches] = [*batches._index_queues, batches._worker_result_queue]
    for worker in batches._workers:
        worker._popen.terminate = worker._popen.kill  # last resort for a worker that does not exit by itself
    if os.getpid() not in _PREPARED:
        _PREPARED.add(os.getpid())
        atexit.register(_end_workers)  # runs before torch's own exit handlers
        Finalize(None, _end_workers, exitpriority=10)  # processes started by multiprocessing skip atexit


def _end_workers() -> None:
    for batches in list(_WITH_WORKERS):
        batches._shutdown_workers()


def _prepare_worker(worker: int) -> None:
    """Make a worker leave signals, and the end of the training process, to that process."""
    _ignore_signals()
    sys.excepthook = _report
    Queue._on_queue_feeder_error = staticmethod(_give_up)  # type: ignore[attr-defined]


def _report(kind: type[BaseException], error: Any, trace: TracebackType | None) -> None:
    """Handle an exception of the thread that hands out batches, unless the process that gets them is gone."""
    if not issubclass(kind, ConnectionError | EOFError):
        _give_up(error)


def _give_up(error: Exception, batch: object = None) -> None:
    """End this worker because it cannot send a batch: the training process would wait for it forever.

    Shared memory may be full: a container has 64 MB by default.
    """
    if not isinstance(error, ConnectionError):  # which means that the training process is gone
        why = reason(error)
        warn(f"liere: warning: a data loader worker cannot send a batch, see df /dev/shm and ulimit -n ({why})")
    os._exit(1)


def _ignore_signals() -> None:
    """Ignore signals in a worker: the training process handles them, and needs its workers to finish the step and save.

    A terminal sends Ctrl-C and SIGHUP to all processes of a group, as do schedulers with SIGTERM. Workers still exit
    with their parent: torch makes them watch it, and `_end_at_exit` handles a parent that exits normally.
    """
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
