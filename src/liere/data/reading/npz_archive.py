"""Safe access to the arrays of a `.npz` file: nothing is unpacked before it is known to fit in memory."""

from __future__ import annotations

import math
import sys
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liere.data.subsets import SPLITS
from liere.errors import InputError
from liere.files.reading import memory_limit, open_regular, reason, stored_bytes
from liere.files.writing import is_system_error

__all__ = ["KINDS", "Array", "list_arrays", "load_array"]

KINDS = ("images", "volumes", "videos")
READ = {
    prefix + name
    for prefix in ("", *(f"{split}_" for split in SPLITS))
    for name in (*KINDS, "labels", "groups", "classes")
}
"""Names of the arrays that are read; a file may contain others."""
ALLOWANCE = 256 * 2**20
"""Bytes of memory that the arrays of any file may take, however small the file; see `liere.files.reading`."""
EXAMPLE_BYTES = 256  # per example in addition to its pixels: label, index, and key for splitting
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}

Array = NDArray[Any]


def list_arrays(path: Path) -> set[str]:
    """Return the names of the arrays in a file, after checking that the needed ones fit in memory."""
    with _opened(path) as archive:
        keys = {name.removesuffix(".npy") for name in archive.namelist()}
    _check_memory(path, sorted(keys & READ))
    return keys


def load_array(path: Path, key: str) -> Array:
    """Return an array of a file; it must have at least one axis."""
    with _opened(path) as archive:
        try:
            with archive.open(_member(archive, key)) as stream:
                array = np.lib.format.read_array(stream, allow_pickle=False)
            _check_text(key, array)
        except Exception as error:
            if is_system_error(error):
                raise
            if "Object arrays" in str(error):
                raise InputError(
                    f"{path}: {key} contains Python objects instead of numbers: give all examples the same shape"
                ) from None
            raise _unreadable(path, error) from None
    if array.ndim == 0:
        raise InputError(f"{path}: {key} is not an array with one entry per example: write it with np.savez")
    return array


def _check_text(key: str, array: Array) -> None:
    """Raise `ValueError` if text has numbers that are not characters, on which Python fails with an internal error."""
    if array.dtype.kind == "U" and array.size:
        native = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
        if native.itemsize and int(native.reshape(-1).view(np.uint32).max()) > sys.maxunicode:
            raise InputError(f"{key} contains invalid characters")


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    with open_regular(path) as stream:
        if stream.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
            raise InputError(f"{path} contains a single array: write images and labels to one file with np.savez")
        try:
            archive = zipfile.ZipFile(stream)
        except Exception as error:
            if is_system_error(error):
                raise
            raise _unreadable(path, error) from None
        with archive:
            yield archive


def _member(archive: zipfile.ZipFile, key: str) -> str:
    return key if key in archive.namelist() else f"{key}.npy"


def _check_memory(path: Path, keys: Iterable[str]) -> None:
    """Raise `ValueError` if arrays claim more data than they have, or need far more memory than the file takes on disk.

    Only the headers of the arrays are unpacked for this check.
    """
    with open_regular(path) as file:
        limit = memory_limit(stored_bytes(file), ALLOWANCE)
    needed = 0
    with _opened(path) as archive:
        for key in keys:
            try:
                needed += _claimed_memory(archive, _member(archive, key))
            except Exception as error:
                if is_system_error(error):
                    raise
                raise _unreadable(path, error) from None
    if needed > limit:
        raise InputError(
            f"{path} would need {needed:,} bytes of memory, more than the {limit:,} allowed for what is on disk: "
            "write it with np.savez instead of np.savez_compressed"
        )


def _claimed_memory(archive: zipfile.ZipFile, name: str) -> int:
    """Return the memory that an array needs by its header: pixels in their final dtype, plus overhead per example."""
    member = archive.getinfo(name)
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # other methods may expand without limit
        raise InputError(f"{name} is compressed with a method that numpy does not use")
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in HEADERS:
            raise InputError(f"{name} has the unknown format version {version}")
        try:
            shape, _, dtype = HEADERS[version](stream)
        except MemoryError:  # of Python's parser, which has a limit of its own
            raise InputError(f"{name} has a header that is nested too deeply") from None
        held = member.file_size - stream.tell()
    if dtype.hasobject:
        return 0  # rejected later, when it is read
    values = math.prod(shape)
    if min(shape, default=0) < 0 or values * dtype.itemsize != held:
        raise InputError(f"{name} has shape {shape} and dtype {dtype}, but only {held:,} bytes")
    itemsize = dtype.itemsize if dtype in (np.uint8, np.bool_) else max(dtype.itemsize, np.dtype(np.float32).itemsize)
    return values * itemsize + (shape[0] if shape else 1) * EXAMPLE_BYTES


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} is damaged or not a .npz file ({reason(error)}): write it again with np.savez")
