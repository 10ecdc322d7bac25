"""Safe unpickling of the image batches in CIFAR's files.

The pickle cannot call numpy: stand-ins for numpy's names only record their arguments, and arrays are created here
from the bytes in the file.
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
"""Maximum number of operations, each of which may create an object; CIFAR's files have up to about 250,000."""
MAX_TUPLES = 100
"""Maximum number of tuples: Python crashes on very deeply nested keys; CIFAR's files have less than ten."""
MAX_REPEATS = 4
"""Maximum number of reused containers: each may double the size of the result; CIFAR's files have none."""
LARGEST = 2**63
"""Integers must be smaller: larger ones can be chosen so that building a dict takes hours."""
PLAIN = ("STRING", "UNICODE", "BYTES", "GLOBAL")
"""Parts of the names of operations that create text or names, which may be reused without limit."""


def unpickle_batch(content: bytes, key: str, *, is_known: bool = False) -> tuple[NDArray[np.uint8], list[int]]:
    """Return the pixels of each image of a batch, `[images, pixels]`, and its labels.

    Args:
        content: The pickle: a dict with `"data"`, an array of bytes.
        key: Key of the labels in the dict.
        is_known: Whether its checksum was verified, so that its operations need not be checked.

    Raises:
        ValueError: If it contains anything else.
    """
    try:
        if not is_known:
            _check_operations(content)
        batch = _Unpickler(io.BytesIO(content), encoding="latin1").load()
    except Exception as error:  # a malicious pickle can raise any type
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
    """Stand-in for `numpy.ndarray`, which a pickle names but does not call."""


class _Dtype:
    """Stand-in for `numpy.dtype` that allows only uint8."""

    def __init__(self, name: object, *_: object) -> None:
        if name not in ("u1", "uint8", "|u1"):
            raise InputError(f"it has an array of {str(name)[:20]} instead of uint8")

    def __setstate__(self, state: object) -> None:
        """Ignore the state, since the dtype is always uint8."""


class _Array:
    """Stand-in for an array during unpickling."""

    def __init__(self, *_: object) -> None:
        self.pixels: NDArray[np.uint8] | None = None

    def __setstate__(self, state: tuple[int, tuple[int, ...], _Dtype, bool, bytes | bytearray | str]) -> None:
        """Use the bytes in the file as pixels."""
        _, shape, dtype, is_column_major, content = state
        if type(dtype) is not _Dtype or type(shape) is not tuple or len(shape) != 2 or min(shape) < 0:
            raise InputError(f"it has an array of the invalid shape {str(shape)[:50]}")
        if isinstance(content, str):
            content = content.encode("latin1")
        elif isinstance(content, bytearray):
            content = bytes(content)  # a copy, because the pickle could still change the original
        pixels = np.frombuffer(content, np.uint8)
        self.pixels = pixels.reshape(shape[::-1]).T if is_column_major else pixels.reshape(shape)


def _array_of(content: bytes | bytearray, dtype: _Dtype, shape: tuple[int, ...], order: str) -> _Array:
    """Stand-in for the function that pickles of protocol 5 call to create an array."""
    array = _Array()
    array.__setstate__((1, shape, dtype, order == "F", content))
    return array


def _same_text(text: str, encoding: str) -> str:
    """Stand-in for the function that encodes the bytes of an array in pickles up to protocol 2: they stay text."""
    return text


PICKLED_NAMES = {
    ("numpy", "ndarray"): _Name,
    ("numpy", "dtype"): _Dtype,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy.core.numeric", "_frombuffer"): _array_of,
    ("numpy._core.numeric", "_frombuffer"): _array_of,
    ("_codecs", "encode"): _same_text,
}


class _Unpickler(pickle.Unpickler):
    """An unpickler that resolves only the names that arrays need."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in PICKLED_NAMES:
            return PICKLED_NAMES[module, name]
        raise pickle.UnpicklingError(f"it refers to {module}.{name}")


def _check_operations(content: bytes) -> None:
    """Raise `ValueError` if unpickling could take far more time or memory than real files do."""
    memo: dict[int, bool] = {}  # whether the object stored at an index is plain
    tuples = repeats = 0
    before = ""
    for number, (operation, argument, _) in enumerate(pickletools.genops(content)):
        name = operation.name
        if "BUFFER" in name:
            raise InputError("it refers to memory outside of it")
        if number > MAX_OPERATIONS:
            raise InputError(f"it has more than {MAX_OPERATIONS:,} operations")
        if isinstance(argument, int) and not -LARGEST <= argument < LARGEST:
            raise InputError(f"it has an integer of {argument.bit_length():,} bits")
        if name == "MEMOIZE" or "PUT" in name:
            place = len(memo) if argument is None else argument
            if place > MAX_OPERATIONS:
                raise InputError(f"it stores an object at index {place:,}")
            memo[place] = any(part in before for part in PLAIN)
        tuples += "TUPLE" in name
        is_plain = isinstance(argument, int) and memo.get(argument, False)
        repeats += name == "DUP" or ("GET" in name and not is_plain)
        if tuples > MAX_TUPLES or repeats > MAX_REPEATS:
            raise InputError("it has too many nested objects")
        before = name
