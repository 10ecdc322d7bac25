"""The examples of each step, as a function of the seed and the step, so that training can resume at any step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import Sampler

from liere.data.counter_random import combine, combine_numbers

__all__ = ["Draw", "EvaluationBatches", "ExampleOrder", "TrainingBatches", "seed_of"]


class Draw(NamedTuple):
    """The next examples to load.

    Attributes:
        indices: Their indices in the data set.
        bits: 64 random bits per example for augmentation; None for no augmentation.
    """

    indices: list[int]
    bits: Tensor | None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle numbers: a tensor would be sent to a worker through a file descriptor and a thread."""
        return _draw, (self.indices, None if self.bits is None else self.bits.tolist())


def _draw(indices: list[int], bits: list[int] | None) -> Draw:
    return Draw(indices, None if bits is None else torch.tensor(bits, dtype=torch.int64))


def seed_of(*numbers: int) -> int:
    """Return a seed that depends on all the numbers and their order.

    Example:
        >>> seed_of(0, 1) != seed_of(1, 0)
        True
    """
    return combine_numbers(*numbers, 0) & (2**63 - 1)


class ExampleOrder:
    """An endless order of the examples that shuffles all of them again in every epoch."""

    def __init__(self, length: int, seed: int) -> None:
        self.length, self.seed = length, seed
        self._known: tuple[int, Tensor] = (-1, torch.empty(0))

    def __getitem__(self, places: range) -> list[int]:
        """Return the examples at consecutive positions in the order."""
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
    """The micro-batches of consecutive steps for one of several processes.

    The batch of a step and its augmentation do not depend on the number of micro-batches or processes, which only
    decide how the batch is divided.
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
    """Batches that contain every example once, in order, distributed to processes round-robin.

    Batches are the same for any number of processes, and so are the predictions. All processes have the same number of
    batches, because sharded models need all processes in every forward pass: where there are too few, a process has an
    extra last batch of one example, which must not be counted.
    """

    length: int
    batch_size: int
    rank: int = 0
    world_size: int = 1

    def __iter__(self) -> Iterator[Draw]:
        for place in range(len(self)):
            start = (place * self.world_size + self.rank) * self.batch_size
            indices = [0] if self.is_extra(place) else list(range(start, min(start + self.batch_size, self.length)))
            yield Draw(indices, None)

    def __len__(self) -> int:
        return -(-self.length // (self.batch_size * self.world_size))

    def is_extra(self, place: int) -> bool:
        """Return whether the batch at this place contains an example of another batch, and must not be counted."""
        return (place * self.world_size + self.rank) * self.batch_size >= self.length
