"""Atomic writes, and checks that a folder is writable."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from liere_command.signals import calling_on_leaving

__all__ = ["is_system_error", "prepare_folder", "write_atomically"]

SYSTEM_ERRORS = {errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE}
ACCESS_ERRORS = {errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOSPC, errno.EDQUOT}


def is_system_error(error: Exception, *, with_access: bool = True) -> bool:
    """Return whether an error is caused by the system rather than by the contents of a file.

    Seeking to an offset given in a damaged file is an `OSError` too (EINVAL), but it is caused by the contents.

    Args:
        error: The error.
        with_access: Whether to include missing files, missing permissions and full disks. Leave them out when an
            unreadable file among many can be skipped.

    Example:
        >>> is_system_error(OSError(errno.EIO, "disk")), is_system_error(OSError(errno.EINVAL, "seek"))
        (True, False)
        >>> missing = FileNotFoundError(errno.ENOENT, "no file")
        >>> is_system_error(missing), is_system_error(missing, with_access=False)
        (True, False)
    """
    counted = SYSTEM_ERRORS | ACCESS_ERRORS if with_access else SYSTEM_ERRORS
    return isinstance(error, MemoryError) or getattr(error, "errno", None) in counted


def write_atomically(path: Path, content: str | bytes | memoryview, confirm: Callable[[], None] | None = None) -> None:
    """Write a file so that readers always see either the old or the new contents, even after a crash.

    Args:
        path: The file.
        content: Its new contents.
        confirm: Called right before the old file is replaced; if it raises, the old file is not changed.

    Raises:
        OSError: If the file cannot be written, for example because the disk is full. The old file is not changed.

    Example:
        >>> folder = Path(tempfile.mkdtemp())
        >>> write_atomically(folder / "note.txt", "whole")
        >>> (folder / "note.txt").read_text(), len(list(folder.iterdir()))
        ('whole', 1)
    """
    # Text may include file names, which may not be valid UTF-8.
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    remove = partial(temporary.unlink, missing_ok=True)
    try:
        with calling_on_leaving(remove):
            remove()  # it could be a link that leads elsewhere
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if confirm is not None:
                confirm()
            temporary.replace(path)
        _sync_folder(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):  # report the first error
            remove()
        if isinstance(error, OSError):
            raise OSError(f"{path} could not be written ({error.strerror}): {_remedy(error)}") from error
        raise


def prepare_folder(folder: Path, name: str) -> None:
    """Create a folder and check that it is writable, before a long computation starts.

    Args:
        folder: The folder.
        name: Name of the argument, for the error message.

    Raises:
        OSError: If the folder cannot be created or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise OSError(f"{name} {folder} cannot be written to ({error.strerror}): choose another folder") from None


def _remedy(error: OSError) -> str:
    if isinstance(error, IsADirectoryError):
        return "move or rename the folder of that name"
    return "create the folder" if isinstance(error, FileNotFoundError) else "free some space or choose another folder"


def _sync_folder(folder: Path) -> None:
    """Flush the new file name to disk, where the system supports it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
