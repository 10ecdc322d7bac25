"""Processes and cores: which of a distributed run's processes this is, and how many cores it may use."""

from __future__ import annotations

import os

from liere_command.processes import announce_first_process, end_with_first_process, is_alive, is_first_process

__all__ = ["announce_first_process", "available_cores", "end_with_first_process", "is_alive", "is_first_process"]


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
