"""Locks on the folders of runs, which are released when their process ends for any reason."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from liere.errors import InputError

__all__ = ["file_lock", "lock_folder"]


@contextmanager
def lock_folder(folder: Path, patience: float = 0) -> Iterator[None]:
    """Keep other processes from changing the run in a folder.

    Args:
        folder: The folder of the run.
        patience: Seconds to wait for another process.

    Raises:
        ValueError: If another process has the lock, or a link would cause writes outside the run.
    """
    for name in (".lock", "checkpoints", "predictions", "tensorboard"):
        if (folder / name).is_symlink():
            raise InputError(f"{folder / name} is a link, but a run may only write to its own folder: delete it")
    lock = file_lock(folder / ".lock")
    try:
        lock.acquire(timeout=patience)
    except TimeoutError:
        raise InputError(f"run {folder} is in use by another process: wait for it or stop it") from None
    try:
        yield
    finally:
        lock.release()


def file_lock(path: Path) -> Any:
    """Return a lock that fails instead of waiting; the system releases it when the process ends."""
    import filelock

    return filelock.FileLock(path, timeout=0)
