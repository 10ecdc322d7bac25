"""A loader of batches whose worker processes leave signals to the process that trains, and end with it."""

from __future__ import annotations

import atexit
import os
import signal
import weakref
from multiprocessing.util import Finalize
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from liere.data.batches import Draw
from liere.data.examples import Batch, ExampleSet
from liere_command.signals import SIGNALS

__all__ = ["make_loader"]


class _WholeBatches(Dataset[Batch]):
    """A data set whose items are batches: of the examples that are asked for."""

    def __init__(self, data: ExampleSet) -> None:
        self.data = data

    def __getitem__(self, draw: Draw) -> Batch:
        return self.data.load(draw.indices, draw.bits)


def make_loader(
    data: ExampleSet, batches: Sampler[Draw], *, workers: int = 0, pin_memory: bool = False
) -> DataLoader[Batch]:
    """Return a loader of a data set's batches; it leaves torch's global generator alone."""
    return _Loader(
        _WholeBatches(data),
        batch_size=None,
        sampler=batches,
        num_workers=workers,
        pin_memory=pin_memory,
        generator=torch.Generator().manual_seed(0),
        worker_init_fn=_ignore_signals if workers else None,
    )


class _Loader(DataLoader[Batch]):
    """A loader whose workers miss no moment of ignoring signals."""

    def __iter__(self) -> Any:
        if not self.num_workers or not hasattr(signal, "pthread_sigmask"):
            return super().__iter__()
        # Workers inherit what is blocked; what comes before they ignore it would end them.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            batches: Any = super().__iter__()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _end_at_exit(batches)
        return batches


_WITH_WORKERS: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
"""Loaders at work, with the queues by which they end their workers: collected together, the queues would go first."""
_PREPARED = set[int]()  # processes


def _end_at_exit(batches: Any) -> None:
    """End the workers of a loader with the program: Python asks them by a signal that they ignore, and waits."""
    _WITH_WORKERS[batches] = [*batches._index_queues, batches._worker_result_queue]
    for worker in batches._workers:
        worker._popen.terminate = worker._popen.kill  # the last resort, when a worker does not end by itself
    if os.getpid() not in _PREPARED:
        _PREPARED.add(os.getpid())
        atexit.register(_end_workers)  # before torch takes the end of the program for the end of its workers
        Finalize(None, _end_workers, exitpriority=10)  # processes of multiprocessing know no atexit


def _end_workers() -> None:
    for batches in list(_WITH_WORKERS):
        batches._shutdown_workers()


def _ignore_signals(worker: int) -> None:
    """Leave signals to the process that trains, which needs its workers to finish the step and save.

    A terminal sends Ctrl-C and SIGHUP to all processes of a group, and so do schedulers with SIGTERM. Workers end with
    their parent all the same: torch makes them look for it, and `_end_at_exit` is for one that leaves by itself.
    """
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
