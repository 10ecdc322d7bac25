"""The machine and package versions recorded with a result."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from liere.version import __version__

__all__ = ["available_cores", "machine", "memory_bytes", "versions"]


def machine() -> dict[str, Any]:
    """Return the hardware and system of this machine, and the number of threads that torch uses."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory_gb": None if (memory := memory_bytes()) is None else round(memory / 2**30, 1),
        "system": platform.platform(),
    }


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int | None:
    """Return the size of the main memory; None if it is unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def versions(packages: Sequence[str] = ("torch", "timm")) -> dict[str, str | None]:
    """Return the versions of Python, liere and other packages; None for those that are not installed."""
    found: dict[str, str | None] = {"python": platform.python_version(), "liere": __version__}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
