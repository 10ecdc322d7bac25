"""Which examples a step sees: a function of the seed and the step, so that any step can be the first of a process."""

from __future__ import annotations

import atexit
import os
import signal
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.util import Finalize
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from liere.data.counter_random import combine
from liere.data.examples import Batch, ExampleSet
from liere_command.signals import SIGNALS

__all__ = ["Draw", "EvaluationBatches", "ExampleOrder", "TrainingBatches", "make_loader", "seed_of"]


class Draw(NamedTuple):
    """Which examples are next.

    Attributes:
        indices: Their places in the data set.
        words: A random word for each, for its augmentation; None where there is none.
    """

    indices: list[int]
    words: Tensor | None


def seed_of(*numbers: int) -> int:
    """Return a seed that depends on all of the numbers.

    Example:
        >>> seed_of(0, 1) != seed_of(1, 0)
        True
    """
    start, *rest = (torch.tensor(number) for number in numbers)
    return int(combine(start, *rest, torch.tensor(0))) & (2**63 - 1)


class ExampleOrder:
    """The endless order in which examples are seen: all of them, shuffled, then all of them, shuffled anew."""

    def __init__(self, length: int, seed: int) -> None:
        self.length, self.seed = length, seed
        self._known: tuple[int, Tensor] = (-1, torch.empty(0))

    def __getitem__(self, places: range) -> list[int]:
        """Return the examples at consecutive places of the order."""
        examples: list[int] = []
        start = places.start
        while start < places.stop:
            epoch, offset = divmod(start, self.length)
            part = self._shuffled(epoch)[offset : offset + places.stop - start]
            examples += part.tolist()
            start += len(part)
        return examples

    def _shuffled(self, epoch: int) -> Tensor:
        if self._known[0] != epoch:
            generator = torch.Generator().manual_seed(seed_of(self.seed, epoch))
            self._known = (epoch, torch.randperm(self.length, generator=generator))
        return self._known[1]


@dataclass(frozen=True)
class TrainingBatches(Sampler[Draw]):
    """The examples of consecutive steps, part by part, for one of several processes.

    The batch of a step, and how it is augmented, does not depend on the number of parts or processes; only who sees
    which part of it does.
    """

    order: ExampleOrder
    steps: range
    batch_size: int
    accumulate: int = 1
    rank: int = 0
    world_size: int = 1

    def __iter__(self) -> Iterator[Draw]:
        size = self.batch_size // (self.accumulate * self.world_size)
        for step in self.steps:
            for part in range(self.accumulate):
                start = step * self.batch_size + (part * self.world_size + self.rank) * size
                places = torch.arange(start, start + size)
                yield Draw(self.order[range(start, start + size)], combine(torch.tensor(self.order.seed), places))

    def __len__(self) -> int:
        return len(self.steps) * self.accumulate


@dataclass(frozen=True)
class EvaluationBatches(Sampler[Draw]):
    """Every example once: batches of consecutive ones, dealt out to processes in turn.

    Batches are the same for any number of processes, and so is what comes out for each example.
    """

    length: int
    batch_size: int
    rank: int = 0
    world_size: int = 1

    def __iter__(self) -> Iterator[Draw]:
        for start in range(self.rank * self.batch_size, self.length, self.world_size * self.batch_size):
            yield Draw(list(range(start, min(start + self.batch_size, self.length))), None)

    def __len__(self) -> int:
        return len(range(self.rank * self.batch_size, self.length, self.world_size * self.batch_size))


class _WholeBatches(Dataset[Batch]):
    """A data set whose items are batches: of the examples that are asked for."""

    def __init__(self, data: ExampleSet) -> None:
        self.data = data

    def __getitem__(self, draw: Draw) -> Batch:
        return self.data.load(draw.indices, draw.words)


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
