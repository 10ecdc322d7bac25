"""Locks on the folders of runs, which are released when their process ends for any reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from liere.errors import InputError
from liere.runs.lease_files import LeaseFiles
from liere.runs.leases import Lease, acquire_lease

__all__ = ["confirm_lock", "file_lock", "is_locked", "lock_folder"]

_HELD: dict[Path, Lease] = {}
"""Leases of this process, by folder."""


@contextmanager
def lock_folder(folder: Path, patience: float = 0, check: Callable[[], object] | None = None) -> Iterator[None]:
    """Keep other processes, also those of other machines, from changing the run in a folder.

    Args:
        folder: The folder of the run.
        patience: Seconds to wait for another process.
        check: Called while waiting; whatever it raises ends the waiting. None for nothing.

    Raises:
        ValueError: If another process has the lock, or a link would cause writes outside the run.
    """
    for name in (".lock", "checkpoints", "predictions", "tensorboard"):
        if (folder / name).is_symlink():
            raise InputError(f"{folder / name} is a link, but a run may only write to its own folder: delete it")
    lease = acquire_lease(folder, patience, check=check)
    lease.start()
    _HELD[folder.absolute()] = lease
    try:
        yield
    finally:
        del _HELD[folder.absolute()]
        lease.release()


def confirm_lock(folder: Path, *, is_brief: bool = False) -> None:
    """Raise if another process has taken over a run that this process has locked; call it right before writing.

    Does nothing if this process has not locked it, as in the other processes of a distributed run.

    Args:
        folder: The folder of the run.
        is_brief: Whether to ask the file system only if the last heartbeat was a while ago.

    Raises:
        LostRunError: If another process has taken over.
    """
    lease = _HELD.get(folder.absolute())
    if lease is not None:
        lease.confirm(is_brief=is_brief)


def is_locked(folder: Path) -> bool:
    """Return whether a process has the lock of a run, or had it when its machine stopped; does not wait."""
    files = LeaseFiles(folder)
    try:
        states = [state for state in map(files.read, files.numbers()) if state is not None and not state.is_withdrawn]
    except FileNotFoundError:
        return False
    return bool(states) and not states[0].has_ended()


def file_lock(path: Path) -> Any:
    """Return a lock that fails instead of waiting; the system releases it when the process ends."""
    import filelock

    return filelock.FileLock(path, timeout=0)
