"""Freed memory is kept for the next step instead of being returned to the system."""

from __future__ import annotations

import ctypes
import os
import sys

__all__ = ["keep_freed_memory"]

# Parameters of `mallopt` of the GNU C library, and their values in bytes.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
KEPT = 2**29
LARGEST = 2**25  # the most that `mallopt` allows; larger tensors are always returned
OWN_CHOICES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory() -> bool:
    """Let this process keep up to 512 MB of freed memory, and return whether that is possible.

    A step frees its tensors and the next allocates the same ones again. If their memory goes back to the system in
    between, the system has to clear every page that it hands out again, which takes a few percent of a step of a small
    model. Only the GNU C library has this setting. If its environment variables are set, nothing is changed.
    """
    if sys.platform != "linux" or any(name in os.environ for name in OWN_CHOICES):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # another C library
        return False
    return bool(mallopt(TRIM_THRESHOLD, KEPT)) and bool(mallopt(MMAP_THRESHOLD, LARGEST))
