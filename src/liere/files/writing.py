"""Files that are there as a whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from pathlib import Path

__all__ = ["is_system_error", "prepare_folder", "write_atomically"]

SYSTEM_ERRORS = {errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE}
ACCESS_ERRORS = {errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOSPC, errno.EDQUOT}


def is_system_error(error: Exception, *, with_access: bool = True) -> bool:
    """Return whether an error is about the machine and not about what a file holds.

    Seeking to a place that a damaged file names is an `OSError`, too (EINVAL), but it is damage.

    Args:
        error: The error.
        with_access: Whether to count a file that is missing, forbidden or has no space left, too. One of many files
            that is passed over where it cannot be read is no reason to stop.

    Example:
        >>> is_system_error(OSError(errno.EIO, "disk")), is_system_error(OSError(errno.EINVAL, "seek"))
        (True, False)
        >>> missing = FileNotFoundError(errno.ENOENT, "no file")
        >>> is_system_error(missing), is_system_error(missing, with_access=False)
        (True, False)
    """
    counted = SYSTEM_ERRORS | ACCESS_ERRORS if with_access else SYSTEM_ERRORS
    return isinstance(error, MemoryError) or getattr(error, "errno", None) in counted


def write_atomically(path: Path, content: str | bytes | memoryview) -> None:
    """Write a file so that whoever looks, at any moment, sees the old content or the new one, even after a crash.

    Raises:
        OSError: If it cannot be written, for want of space say. The old file is left as it was.

    Example:
        >>> folder = Path(tempfile.mkdtemp())
        >>> write_atomically(folder / "note.txt", "whole")
        >>> (folder / "note.txt").read_text(), len(list(folder.iterdir()))
        ('whole', 1)
    """
    # Names of files, which may be part of a text, may hold bytes that are no UTF-8.
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):  # what was wrong first is told
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(f"{path} could not be written ({error.strerror}): {_remedy(error)}") from error
        raise


def prepare_folder(folder: Path, name: str) -> None:
    """Make a folder and make sure that files can be written to it, before hours are spent.

    Args:
        folder: The folder.
        name: The argument that it came from, for the message.

    Raises:
        OSError: If that is not so.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise OSError(f"{name} {folder} cannot be written to ({error.strerror}): choose another folder") from None


def _remedy(error: OSError) -> str:
    if isinstance(error, IsADirectoryError):
        return "move the folder of that name away"
    return "make the folder" if isinstance(error, FileNotFoundError) else "free some space or choose another folder"


def _sync_folder(folder: Path) -> None:
    """Have the new name on the disk, too, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
