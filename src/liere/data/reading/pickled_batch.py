"""A pickled batch of images, as CIFAR's authors wrote it: unpickled without trusting it.

The pickle calls nothing of numpy. Arrays are made here, of bytes that are in the file; what stands in for numpy's names
only notes its arguments.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liere.errors import InputError

__all__ = ["unpickle_batch"]

MAX_OPERATIONS = 1_000_000
"""Steps of a pickle, each of which may make an object. The longest of CIFAR's has some 250,000."""
MAX_TUPLES = 100
"""Tuples of a pickle: Python crashes on keys that are nested very deep. CIFAR's have less than ten."""
MAX_REPEATS = 4
"""Objects that hold others and are used again. Each may double what there is to look through; CIFAR's have none."""
LARGEST = 2**63
"""Integers are below that: others can be chosen so that a dict of them takes hours."""
PLAIN = ("STRING", "UNICODE", "BYTES", "GLOBAL")
"""Parts of the names of operations that make text or name something, which may be used again at will."""


def unpickle_batch(content: bytes, key: str, *, is_known: bool = False) -> tuple[NDArray[np.uint8], list[int]]:
    """Return the pixels of each image of a batch, `[images, pixels]`, and its labels.

    Args:
        content: The pickle: a dict with `"data"`, an array of bytes.
        key: Where the labels are in it.
        is_known: Whether its checksum was right, so that it need not be looked through first.

    Raises:
        ValueError: If it holds anything else.
    """
    try:
        if not is_known:
            _check_operations(content)
        batch = _Unpickler(io.BytesIO(content), encoding="latin1").load()
    except Exception as error:  # a pickle can make the reader raise anything
        raise InputError(f"{type(error).__name__}: {error}") from None
    if type(batch) is not dict or "data" not in batch or key not in batch:
        raise InputError(f"it is not a dict with 'data' and {key!r}")
    data, labels = batch["data"], batch[key]
    if type(data) is not _Array or data.pixels is None:
        raise InputError("its images are not an array of bytes")
    if type(labels) is not list or not all(type(label) is int for label in labels):
        raise InputError("its labels are not a list of integers")
    return data.pixels, labels


class _Name:
    """Stands in for `numpy.ndarray`, which is named in a pickle but not called."""


class _Dtype:
    """Stands in for `numpy.dtype`: bytes, and nothing else."""

    def __init__(self, name: object, *_: object) -> None:
        if name not in ("u1", "uint8", "|u1"):
            raise InputError(f"it has an array of {str(name)[:20]}, not of bytes")

    def __setstate__(self, state: object) -> None:
        """Leave it at bytes."""


class _Array:
    """Stands in for an array that is being unpickled."""

    def __init__(self, *_: object) -> None:
        self.pixels: NDArray[np.uint8] | None = None

    def __setstate__(self, state: tuple[int, tuple[int, ...], _Dtype, bool, bytes | str]) -> None:
        """Take the bytes of the file for pixels."""
        _, shape, dtype, is_column_major, content = state
        if type(dtype) is not _Dtype or type(shape) is not tuple or len(shape) != 2 or min(shape) < 0:
            raise InputError(f"it has an array of shape {str(shape)[:50]}")
        data = content.encode("latin1") if isinstance(content, str) else content
        pixels = np.frombuffer(data, np.uint8)
        self.pixels = pixels.reshape(shape[::-1]).T if is_column_major else pixels.reshape(shape)


PICKLED_NAMES = {
    ("numpy", "ndarray"): _Name,
    ("numpy", "dtype"): _Dtype,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
}


class _Unpickler(pickle.Unpickler):
    """Know the names that arrays need, and nothing else that a pickle may ask for."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in PICKLED_NAMES:
            return PICKLED_NAMES[module, name]
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def _check_operations(content: bytes) -> None:
    """Raise `ValueError` if unpickling would take more time or memory than the length of the pickle justifies."""
    memo: dict[int, bool] = {}  # whether the object that is kept at a place is plain
    tuples = repeats = 0
    before = ""
    for number, (operation, argument, _) in enumerate(pickletools.genops(content)):
        name = operation.name
        if number > MAX_OPERATIONS:
            raise InputError(f"it has more than {MAX_OPERATIONS:,} operations")
        if isinstance(argument, int) and not -LARGEST <= argument < LARGEST:
            raise InputError(f"it has an integer of {argument.bit_length():,} bits")
        if name == "MEMOIZE" or "PUT" in name:
            place = len(memo) if argument is None else argument
            if place > MAX_OPERATIONS:
                raise InputError(f"it keeps an object at place {place:,}")
            memo[place] = any(part in before for part in PLAIN)
        tuples += "TUPLE" in name
        is_plain = isinstance(argument, int) and memo.get(argument, False)
        repeats += name == "DUP" or ("GET" in name and not is_plain)
        if tuples > MAX_TUPLES or repeats > MAX_REPEATS:
            raise InputError("it has objects within objects without end")
        before = name
