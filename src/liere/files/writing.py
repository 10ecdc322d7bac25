"""Atomic writes, and checks that a folder is writable."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from liere.errors import InputError
from liere_command.signals import calling_on_leaving

__all__ = [
    "cannot_write",
    "check_folder",
    "check_replaceable",
    "is_system_error",
    "prepare_folder",
    "write_atomically",
]

MOST_LEVELS = 200  # pathlib creates folders recursively
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
        OSError: If the file cannot be written, for example because the disk is full, or if its name is
            that of a device, pipe, socket or folder. The old file is not changed.

    Example:
        >>> folder = Path(tempfile.mkdtemp())
        >>> write_atomically(folder / "note.txt", "whole")
        >>> (folder / "note.txt").read_text(), len(list(folder.iterdir()))
        ('whole', 1)
    """
    check_replaceable(path)
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
        if isinstance(error, OSError) and error.strerror is not None:  # otherwise `confirm` has named another file
            raise cannot_write(path, error) from error
        raise


def cannot_write(path: Path, error: OSError) -> OSError:
    """Return an error that names a file which the system could not write, and the remedy.

    Example:
        >>> cannot_write(Path("run/log"), OSError(errno.ENOSPC, "No space left on device"))
        OSError('run/log could not be written (No space left on device): free some space or choose another folder')
    """
    is_missing = isinstance(error, FileNotFoundError)
    remedy = "create the folder" if is_missing else "free some space or choose another folder"
    return OSError(f"{path} could not be written ({error.strerror}): {remedy}")


def check_replaceable(path: Path) -> None:
    """Check that a path can be given to `write_atomically`, before a long computation starts.

    A new file takes the place of the old one. It must not take that of a device such as `/dev/null`, of a pipe or of a
    folder. A link to one of these is refused as well; links to regular files are replaced, not written through.

    Raises:
        OSError: If the path exists and is not a regular file.
    """
    try:
        mode = path.stat().st_mode
    except OSError:  # there is nothing to replace, or writing will fail and say why
        return
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a device, pipe or socket"
        raise OSError(f"{path} could not be written (it is {kind}, not a regular file): choose another file name")


def check_folder(folder: Path, name: str) -> None:
    """Raise `ValueError` if a folder has a name that is not text, or is nested too deeply to be created.

    Args:
        folder: The folder.
        name: Name of the argument, for the error message.
    """
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise InputError(f"{name} {str(folder)!r} is not valid UTF-8 text: choose another name") from None
    if len(folder.parts) > MOST_LEVELS:
        raise InputError(f"{name} is nested in {len(folder.parts):,} folders: use at most {MOST_LEVELS}")


def prepare_folder(folder: Path, name: str) -> None:
    """Create a folder and check that it is writable, before a long computation starts.

    Args:
        folder: The folder.
        name: Name of the argument, for the error message.

    Raises:
        OSError: If the folder cannot be created or written to.
        ValueError: If its name is not a valid one.
    """
    check_folder(folder, name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise OSError(f"{name} {folder} cannot be written to ({error.strerror}): choose another folder") from None


def _sync_folder(folder: Path) -> None:
    """Flush the new file name to disk, where the system supports it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
