"""Checks of files written by `torch.save`, made before `torch.load` reads them.

`torch.load(weights_only=True)` executes no code, but it builds the objects that a file describes: tuples nested so
deeply that hashing them crashes the process, tuples of tuples that take years to hash, or integers that all collide in
a dictionary. Files of tensors never have such objects, so they are rejected by inspecting the pickle operations.
"""

from __future__ import annotations

import mmap
import os
import pickletools
import zipfile
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from liere.files.reading import DamagedError, open_regular

__all__ = ["check_torch_file"]

ARCHIVE = b"PK\x03\x04"  # the bytes by which torch recognizes an archive
DEEPEST = 100  # a Lightning checkpoint has about 10
MOST_OBJECTS = 20_000_000  # an object counts each time it is used
MOST_BITS = 64
MAGIC_NUMBER = 0x1950A86A20F9469CFC6C  # the beginning of a file written by torch before 1.6
PICKLES = 5  # at the start of such a file: magic number, version, machine, contents, tensor names

_GROWING = {"APPEND", "APPENDS", "SETITEM", "SETITEMS", "BUILD", "ADDITEMS"}


class _Extent(NamedTuple):
    depth: int
    objects: int


def check_torch_file(path: Path) -> None:
    """Check that reading a torch file takes no more memory and time than its size justifies.

    Args:
        path: A zip archive, as written since torch 1.6, or a file of an earlier version.

    Raises:
        FileNotFoundError: If the file does not exist.
        DamagedError: If it claims more contents than its size, or has objects that no file of tensors has.
        zipfile.BadZipFile: If it is a damaged archive.
    """
    with open_regular(path) as file:
        if file.read(len(ARCHIVE)) != ARCHIVE:
            _check_old_file(path, file)
            return
        file.seek(0)
        with zipfile.ZipFile(file) as archive:
            size, members = os.fstat(file.fileno()).st_size, archive.infolist()
            held = sum(member.file_size for member in members)
            if held > size:  # torch neither compresses nor repeats members
                raise DamagedError(f"{path} has {size:,} bytes, but claims {held:,}: save it again with torch.save")
            for member in members:
                if member.filename.lower().endswith(".pkl"):  # torch ignores case
                    with archive.open(member) as pickle:
                        _check_pickle(path, pickle)


def _check_old_file(path: Path, file: BinaryIO) -> None:
    if not os.fstat(file.fileno()).st_size:
        raise DamagedError(f"{path} is empty")
    # Reading from an open file allocates as many bytes as a pickle claims; a memory map is limited to the real size.
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for _ in range(PICKLES):
            _check_pickle(path, content)


def _check_pickle(path: Path, pickle: Any) -> None:
    """Simulate the operations of one pickle, tracking the extent of every object instead of building it."""
    stack: list[_Extent] = []
    marks: list[int] = []
    memo: dict[Any, _Extent] = {}
    try:
        for operation, argument, _ in pickletools.genops(pickle):
            name = operation.name
            if isinstance(argument, int) and argument.bit_length() > MOST_BITS and argument != MAGIC_NUMBER:
                bits = argument.bit_length()
                raise DamagedError(f"{path} contains an integer of {bits:,} bits, which no file of tensors has")
            if name == "MARK":
                marks.append(len(stack))
            elif name == "MEMOIZE" or name.endswith("PUT"):
                memo[len(memo) if name == "MEMOIZE" else argument] = stack[-1]
            elif name.endswith("GET"):
                stack.append(memo[argument])
            else:
                _apply(operation, stack, marks)
            if stack and (stack[-1].depth > DEEPEST or stack[-1].objects > MOST_OBJECTS):
                raise DamagedError(f"{path} contains more nested objects than any file of tensors has")
    except (IndexError, KeyError, UnicodeDecodeError) as error:
        raise DamagedError(f"{path} is damaged ({type(error).__name__} in its pickle)") from None


def _apply(operation: pickletools.OpcodeInfo, stack: list[_Extent], marks: list[int]) -> None:
    """Pop the arguments of an operation from the stack, and push its results."""
    before = operation.stack_before
    if pickletools.markobject in before:
        start = marks.pop() - before.index(pickletools.markobject)
    else:
        start = len(stack) - len(before)
    if start < 0:
        raise IndexError("stack underflow")
    taken = stack[start:]
    del stack[start:]
    if not operation.stack_after:
        return
    objects = 1 + sum(one.objects for one in taken)
    if operation.name in _GROWING:  # the first argument is the container
        depth = max([taken[0].depth, *(1 + one.depth for one in taken[1:])])
    else:
        depth = 1 + max((one.depth for one in taken), default=0)
    stack.extend(_Extent(depth, objects) for _ in operation.stack_after)
