"""Temporary seeds for the global random generators."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

__all__ = ["global_seeds"]


@contextmanager
def global_seeds() -> Iterator[Callable[[int], None]]:
    """Yield a function that seeds the generators of torch (CPU), numpy and Python; restore them on exit.

    Example:
        >>> before = torch.get_rng_state()
        >>> with global_seeds() as seed_all:
        ...     seed_all(7)
        ...     one = torch.rand(1), random.random()
        ...     seed_all(7)
        ...     other = torch.rand(1), random.random()
        >>> one == other, torch.equal(before, torch.get_rng_state())
        (True, True)
    """
    numpy = sys.modules.get("numpy")  # numpy's generator is only in use if numpy is imported
    python_state, numpy_state = random.getstate(), numpy.random.get_state() if numpy else None

    def seed_all(seed: int) -> None:
        torch.default_generator.manual_seed(seed)  # `torch.manual_seed` would also seed GPUs
        random.seed(seed)
        if numpy:
            numpy.random.seed(seed & (2**32 - 1))

    with torch.random.fork_rng(devices=[]):
        try:
            yield seed_all
        finally:
            random.setstate(python_state)
            if numpy:
                numpy.random.set_state(numpy_state)
