"""Reading untrusted files: regular files only, and never more memory than their size justifies.

The contents of a file are not trusted. Readers use `open_regular`, which never blocks on a pipe, or `read_bytes`, which
has a size limit. Compressed data may expand to at most `memory_limit`: 20 times the bytes of the file that are on disk
(`stored_bytes`: holes of a sparse file do not count), or a fixed allowance for small files.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from liere.errors import InputError
from liere.files.writing import is_system_error
from liere.terminal.messages import warn

__all__ = [
    "JSON_BYTES",
    "LONGEST_LIST",
    "DamagedError",
    "check_regular",
    "check_stored",
    "memory_limit",
    "naming",
    "open_regular",
    "read_bytes",
    "read_gzip",
    "read_json",
    "reason",
    "shorten",
    "stored_bytes",
    "warn_once",
]

GROWTH = 20
"""Bytes of memory allowed per byte on disk. Real compressed arrays and tables need 2 to 10."""
JSON_BYTES = 10_000_000  # real records have a few thousand
LONGEST = 200  # maximum length of file contents quoted in a message
LONGEST_LIST = 1_000  # the same for what other code says about them, such as the names of weights

KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFSOCK: "a socket",
}


class DamagedError(InputError):
    """A file with invalid contents; the message names the file."""


def check_regular(path: Path) -> None:
    """Raise `DamagedError` unless a path is a regular file, since reading a pipe or a device may never end.

    Raises:
        FileNotFoundError: If the path does not exist.
        DamagedError: If it is not a regular file.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise DamagedError(f"{path} is a link that leads to itself: replace it with a regular file") from None
    _check_mode(path, mode)


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading bytes.

    Raises:
        FileNotFoundError: If the file does not exist.
        DamagedError: If it is not a regular file.
    """
    check_regular(path)
    # The file may have been replaced since: open it without blocking, then check the open file.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        _check_mode(path, os.fstat(descriptor).st_mode)
    except DamagedError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the name of a file to errors of the system in a block: those about an open file have none.

    Example:
        >>> with naming(Path("run/config.yaml")):
        ...     raise OSError(errno.EIO, "Input/output error")
        Traceback (most recent call last):
            ...
        OSError: [Errno 5] Input/output error: 'run/config.yaml'
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def read_bytes(path: Path, most: int) -> bytes:
    """Return the contents of a regular file.

    Args:
        path: The file.
        most: Maximum size in bytes.

    Raises:
        FileNotFoundError: If the file does not exist.
        DamagedError: If it is larger, or is not a regular file.
    """
    with naming(path), open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        # Where there is nothing to read yet, as in /proc/kmsg, `read` returns None.
        content = b"" if size > most else file.read(most + 1) or b""
    if size > most or len(content) > most:
        raise DamagedError(f"{path} has {max(size, len(content)):,} bytes, but at most {most:,} are read: shorten it")
    return content


def stored_bytes(file: BinaryIO) -> int:
    """Return how many bytes of an open file are on disk: its size without the holes of a sparse file.

    Blocks are not counted, since an honest file may have few: if it is compressed, or has only just been written. Where
    the file system does not report holes, all bytes count.
    """
    descriptor = file.fileno()
    size = os.fstat(descriptor).st_size
    if not hasattr(os, "SEEK_DATA"):
        return size
    place, end, stored = os.lseek(descriptor, 0, os.SEEK_CUR), 0, 0
    try:
        while end < size:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
            end = os.lseek(descriptor, start, os.SEEK_HOLE)
            stored += end - start
    except OSError as error:
        if error.errno != errno.ENXIO:  # which means that the rest is a hole
            return size
    finally:
        os.lseek(descriptor, place, os.SEEK_SET)
    return stored


def check_stored(path: Path, file: BinaryIO, allowance: int) -> None:
    """Raise `DamagedError` if an open file is much larger than the part of it that is on disk.

    Args:
        path: The file, for the message.
        file: The open file.
        allowance: Bytes that any file may have, however few of them are on disk.
    """
    size, stored = os.fstat(file.fileno()).st_size, stored_bytes(file)
    if size > memory_limit(stored, allowance):
        raise DamagedError(f"{path} has {size:,} bytes, but only {stored:,} of them are on disk: copy it again")


def memory_limit(size: int, allowance: int) -> int:
    """Return how many bytes of memory the contents of a file may take.

    Args:
        size: Bytes of the file that are on disk.
        allowance: Bytes that any file may take, however small.

    Example:
        >>> memory_limit(10, allowance=1_000), memory_limit(500, allowance=1_000)
        (1000, 10000)
    """
    return max(GROWTH * size, allowance)


def read_gzip(path: Path, allowance: int, most: int = sys.maxsize) -> bytes:
    """Return the decompressed contents of a gzip file.

    Args:
        path: The file.
        allowance: Bytes to which any file may expand, however small.
        most: Bytes to which no file may expand further, however large.

    Raises:
        FileNotFoundError: If the file does not exist.
        DamagedError: If it expands beyond `memory_limit` or `most`, or is damaged.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:  # zeros after the compressed data would be searched for more, even if the file is sparse
            raise DamagedError(f"{path} has {size:,} bytes, but at most {most:,} are read: compress it again")
        most = min(memory_limit(stored_bytes(file), allowance), most)
        try:
            with gzip.GzipFile(fileobj=file) as stream:
                content = stream.read(most + 1)
        except (EOFError, OSError, zlib.error) as error:
            if is_system_error(error):
                raise
            raise DamagedError(f"{path} is damaged ({reason(error)})") from None
    if len(content) > most:
        raise DamagedError(f"{path} expands to more than {most:,} bytes: if that is intended, unpack it with gunzip")
    return content


def read_json(path: Path, most: int = JSON_BYTES) -> Any:
    """Return the contents of a JSON file in UTF-8.

    Raises:
        FileNotFoundError: If the file does not exist.
        DamagedError: If it is too large or damaged, or has a duplicate field.
    """
    content = read_bytes(path, most)
    try:
        return json.loads(content.decode("utf-8-sig"), object_pairs_hook=_fields)
    except (ValueError, RecursionError) as error:
        nested = isinstance(error, RecursionError)
        raise DamagedError(f"{path} is damaged ({'nested too deeply' if nested else reason(error)})") from None


def reason(error: Exception) -> str:
    """Return the message of an error as one line.

    Example:
        >>> reason(ValueError("first\\n  second")), reason(EOFError())
        ('first second', 'EOFError')
    """
    text = getattr(error, "strerror", None) or str(error)
    return shorten(" ".join(str(text).split())) or type(error).__name__


def shorten(text: str, most: int = LONGEST) -> str:
    """Return text, truncated if it is longer than `most`, which is too long for a message.

    Example:
        >>> shorten("short"), len(shorten(1_000 * "long"))
        ('short', 200)
    """
    return text if len(text) <= most else f"{text[: most - 3]}..."


@lru_cache(maxsize=1024)
def warn_once(line: str) -> None:
    """Write a warning to standard error, each one only once."""
    warn(f"liere: warning: {line}")


def _check_mode(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = KINDS.get(stat.S_IFMT(mode), "something else")
        raise DamagedError(f"{path} is {kind}, not a regular file: replace it")


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InputError(f"duplicate field {name!r}")
        found[name] = value
    return found
