"""Which of a distributed run's processes this is."""

from __future__ import annotations

import os

__all__ = ["available_cores", "is_first_process"]

RANKS = ("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "SLURM_PROCID")


def is_first_process() -> bool:
    """Return whether this process writes files and talks: the one that was started by hand, or the first of them."""
    return all(os.environ.get(name, "0") == "0" for name in RANKS)


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
