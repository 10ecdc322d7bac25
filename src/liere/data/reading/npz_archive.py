"""A `.npz` file as an archive of arrays: nothing in it is believed or unpacked before it is known to fit in memory."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liere.data.subsets import SPLITS
from liere.errors import InputError
from liere.files.reading import memory_limit, open_regular, reason
from liere.files.writing import is_system_error

__all__ = ["KINDS", "Array", "list_arrays", "load_array"]

KINDS = ("images", "volumes", "videos")
READ = {
    prefix + name
    for prefix in ("", *(f"{split}_" for split in SPLITS))
    for name in (*KINDS, "labels", "groups", "classes")
}
"""Arrays that are read; a file may hold others."""
ALLOWANCE = 256 * 2**20
"""Bytes of memory that the arrays of a file may take, however small the file; see `liere.files.reading`."""
EXAMPLE_BYTES = 256  # that an example takes besides its pixels: its label, its place, a key to divide it by
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}

Array = NDArray[Any]


def list_arrays(path: Path) -> set[str]:
    """Return the names of the arrays of a file, once it is certain that those that matter fit in memory."""
    with _opened(path) as archive:
        keys = {name.removesuffix(".npy") for name in archive.namelist()}
    _check_memory(path, sorted(keys & READ))
    return keys


def load_array(path: Path, key: str) -> Array:
    """Return an array of a file, which must have an axis at least."""
    with _opened(path) as archive:
        try:
            with archive.open(_member(archive, key)) as stream:
                array = np.lib.format.read_array(stream, allow_pickle=False)
        except Exception as error:
            if is_system_error(error):
                raise
            if "Object arrays" in str(error):
                raise InputError(
                    f"{path}: {key} holds Python objects, not numbers (are they of several shapes?): give all one shape"
                ) from None
            raise _unreadable(path, error) from None
    if array.ndim == 0:
        raise InputError(f"{path}: {key} is not an array with an entry for each example: write it with np.savez")
    return array


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    with open_regular(path) as stream:
        if stream.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
            raise InputError(f"{path} is a single array: write images and labels into one file with np.savez")
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
    """Raise `ValueError` if arrays claim more than they hold, or would take much more memory than the file's size.

    Nothing is unpacked for that but the headers of the arrays.
    """
    limit = memory_limit(path.stat().st_size, ALLOWANCE)
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
            f"{path} would take {needed:,} bytes of memory, but at most {limit:,} are allowed for a file of its size: "
            "write it with np.savez instead of np.savez_compressed"
        )


def _claimed_memory(archive: zipfile.ZipFile, name: str) -> int:
    """Return how much memory the header of an array asks for: its pixels as they are kept, and a bit per example."""
    member = archive.getinfo(name)
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others expand by any factor
        raise InputError(f"{name} is compressed in a way that numpy does not use")
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in HEADERS:
            raise InputError(f"{name} has format {version}")
        shape, _, dtype = HEADERS[version](stream)
        held = member.file_size - stream.tell()
    if dtype.hasobject:
        return 0  # is refused when it is read
    values = math.prod(shape)
    if min(shape, default=0) < 0 or values * dtype.itemsize != held:
        raise InputError(f"{name} has shape {shape} and {dtype}, but {held:,} bytes")
    itemsize = dtype.itemsize if dtype in (np.uint8, np.bool_) else max(dtype.itemsize, np.dtype(np.float32).itemsize)
    return values * itemsize + (shape[0] if shape else 1) * EXAMPLE_BYTES


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} is damaged, or no .npz file ({reason(error)}): write it again with np.savez")
