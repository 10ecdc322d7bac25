"""Checks of files written by `torch.save`, made before `torch.load` reads them.

`torch.load(weights_only=True)` executes no code, but it builds the objects that a file describes: tuples nested so
deeply that hashing them crashes the process, keys that all collide in a dictionary, or a byte array of any size. Files
of tensors never have such objects, so they are rejected by inspecting the pickle operations.
"""

from __future__ import annotations

import mmap
import os
import pickletools
import re
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import torch

from liere.files.reading import DamagedError, check_stored, open_regular, shorten
from liere.files.torch_archives import ALLOWANCE, UnusualFileError, check_archive

__all__ = ["check_torch_file"]

ARCHIVE = b"PK\x03\x04"  # the bytes by which torch recognizes an archive
PROTOCOL = b"\x80"  # the first operation of any pickle that torch writes
DEEPEST = 100  # a Lightning checkpoint has about 10
MOST_OBJECTS = 20_000_000  # an object counts each time it is used
MOST_TUPLE_KEYS = 1_000  # of dictionaries: their hashes can be made equal
MOST_BITS = 64
MAGIC_NUMBER = 0x1950A86A20F9469CFC6C  # the beginning of a file written by torch before 1.6
PICKLES = 5  # at the start of such a file: magic number, version, machine, contents, tensor names

SCALARS = set(
    "NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT BINUNICODE SHORT_BINSTRING".split()  # noqa: SIM905
)
LISTS, DICTIONARIES = {"EMPTY_LIST"}, {"EMPTY_DICT"}
OTHERS = set(
    "PROTO STOP MARK GLOBAL REDUCE BUILD APPEND APPENDS SETITEM SETITEMS TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_TUPLE "  # noqa: SIM905
    "BINPERSID BINGET LONG_BINGET BINPUT LONG_BINPUT".split()
)
OPERATIONS = SCALARS | LISTS | DICTIONARIES | OTHERS
"""What torch writes; it can read some more, which build sets and objects of other classes."""

CALLED = {
    "collections OrderedDict": r"\(\)",
    "collections Counter": r"\(dictionary\)",  # in the state of learning-rate schedulers
    "torch Size": r"\(\(.*\)\)",
    "torch device": r"\(scalar(,scalar)?\)",
    "torch.serialization _get_layout": r"\(scalar\)",
    "__builtin__ complex": r"\(scalar,scalar\)",
    "__builtin__ set": r"\(scalars\)",
    "torch._utils _rebuild_tensor": ".*",
    "torch._utils _rebuild_tensor_v2": ".*",
    "torch._utils _rebuild_tensor_v3": ".*",  # of newer dtypes, such as uint16
    "torch._utils _rebuild_parameter": ".*",
}
"""Functions that files of tensors call, with the kinds of arguments that they may have."""
STORAGE = re.compile(r"(torch|torch\.cuda) [A-Z][A-Za-z0-9]*Storage|torch\.storage (Untyped|Typed)Storage")
STORAGE_KEY = re.compile(r"\(scalar,type,scalar,scalar,scalar(,(scalar|\([a-z,]*\)))?\)")
"""The kind of what stands for a tensor's memory, which torch uses as a key."""
LONGEST_TUPLE = 8  # whose elements are kept track of


class _Object:
    """What is known of an object: its depth, its size and its kind."""

    __slots__ = ("depth", "kind", "objects")

    def __init__(self, depth: int = 1, objects: int = 1, kind: str = "object") -> None:
        self.depth, self.objects, self.kind = depth, objects, kind


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
            check_archive(path, file, archive)
            for member in archive.infolist():
                if member.filename.lower().endswith(".pkl"):  # torch ignores case
                    with archive.open(member) as pickle:
                        _PickleCheck(path).check(pickle)


def _check_old_file(path: Path, file: BinaryIO) -> None:
    if not os.fstat(file.fileno()).st_size:
        raise DamagedError(f"{path} is empty")
    check_stored(path, file, ALLOWANCE)
    # Reading from an open file allocates as many bytes as a pickle claims; a memory map is limited to the real size.
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content[:1] != PROTOCOL:
            raise UnusualFileError(path, "is not a file of torch")
        for _ in range(PICKLES):
            _PickleCheck(path).check(content)


class _PickleCheck:
    """A simulation of the operations of one pickle, which tracks the extent of every object instead of building it.

    Args:
        path: The file, for messages.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stack: list[_Object] = []
        self.marks: list[int] = []
        self.memo: dict[Any, _Object] = {}
        self.tuple_keys = 0

    def check(self, pickle: Any) -> None:
        """Raise `DamagedError` if there is anything that no file of tensors has."""
        try:
            for operation, argument, _ in pickletools.genops(pickle):
                self._step(operation, argument)
                if self.stack and (self.stack[-1].depth > DEEPEST or self.stack[-1].objects > MOST_OBJECTS):
                    raise self._foreign("more nested objects than any file of tensors has")
        except (IndexError, KeyError, UnicodeDecodeError) as error:
            raise DamagedError(f"{self.path} is damaged ({type(error).__name__} in its pickle)") from None

    def _foreign(self, what: str) -> UnusualFileError:
        return UnusualFileError(self.path, f"contains {what}", "save plain tensors, as in model.state_dict()")

    def _step(self, operation: pickletools.OpcodeInfo, argument: Any) -> None:
        name = operation.name
        if name not in OPERATIONS:
            raise self._foreign(f"objects that no file of tensors has ({name} in its pickle)")
        if isinstance(argument, int) and argument.bit_length() > MOST_BITS and argument != MAGIC_NUMBER:
            raise self._foreign(f"an integer of {argument.bit_length():,} bits, which no file of tensors has")
        if name == "MARK":
            self.marks.append(len(self.stack))
        elif name.endswith("PUT"):
            self.memo[argument] = self.stack[-1]
        elif name.endswith("GET"):
            self.stack.append(self.memo[argument])
        elif name == "GLOBAL":
            self.stack.append(_Object(kind=self._kind_of_global(argument)))
        else:
            self._apply(operation, self._take(operation))

    def _take(self, operation: pickletools.OpcodeInfo) -> list[_Object]:
        """Pop the arguments of an operation from the stack."""
        before = operation.stack_before
        if pickletools.markobject in before:
            start = self.marks.pop() - before.index(pickletools.markobject)
        else:
            start = len(self.stack) - len(before)
        if start < 0:
            raise IndexError("stack underflow")
        taken = self.stack[start:]
        del self.stack[start:]
        return taken

    def _apply(self, operation: pickletools.OpcodeInfo, taken: list[_Object]) -> None:
        """Push the result of an operation on the stack."""
        name = operation.name
        if not operation.stack_after:
            return
        if name in ("APPEND", "APPENDS", "SETITEM", "SETITEMS", "BUILD"):
            self._grow(name, *taken)
            return
        objects = 1 + sum(one.objects for one in taken)
        depth = 1 + max((one.depth for one in taken), default=0)
        kind = "object"
        if name in SCALARS:
            kind = "scalar"
        elif name in LISTS:
            kind = "scalars"
        elif name in DICTIONARIES:
            kind = "dictionary"
        elif "TUPLE" in name:
            kind = _kind_of_tuple(taken)
        elif name == "REDUCE":
            kind = self._kind_of_call(*taken)
        elif name == "BINPERSID" and not STORAGE_KEY.fullmatch(taken[0].kind):
            raise self._foreign("references that no file of tensors has")
        self.stack.append(_Object(depth, objects, kind))

    def _grow(self, name: str, container: _Object, *added: _Object) -> None:
        """Add objects to a container, which is also known wherever else it is used."""
        if name == "BUILD":
            fits = container.kind == "ordered dictionary"
        elif "ITEM" in name:
            fits = container.kind.endswith("dictionary")
            self._check_keys(added[0::2])
        else:
            fits = container.kind in ("list", "scalars")
        if not fits:
            raise self._foreign(f"objects that no file of tensors has ({name} of another object in its pickle)")
        if container.kind == "scalars" and any(one.kind != "scalar" for one in added):
            container.kind = "list"
        container.depth = max([container.depth, *(1 + one.depth for one in added)])
        container.objects += sum(one.objects for one in added)
        self.stack.append(container)

    def _check_keys(self, keys: tuple[_Object, ...]) -> None:
        others = [key.kind for key in keys if key.kind != "scalar"]
        self.tuple_keys += len(others)
        if self.tuple_keys > MOST_TUPLE_KEYS or not all(re.fullmatch(r"\([scalar,]*\)", kind) for kind in others):
            raise self._foreign("a dictionary with keys that no file of tensors has")

    def _kind_of_global(self, argument: str) -> str:
        module, _, name = argument.partition(" ")
        if argument in CALLED:
            return argument
        if STORAGE.fullmatch(argument) or (module == "torch" and isinstance(vars(torch).get(name), torch.dtype)):
            return "type"
        raise self._foreign(f"{shorten(f'{module}.{name}')}, which no file of tensors has")

    def _kind_of_call(self, function: _Object, arguments: _Object) -> str:
        if function.kind not in CALLED or not re.fullmatch(CALLED[function.kind], arguments.kind):
            raise self._foreign("a call that no file of tensors has")
        return "ordered dictionary" if function.kind.endswith("OrderedDict") else "object"


def _kind_of_tuple(elements: list[_Object]) -> str:
    """Return the kinds of the elements of a short tuple; tuples inside of tuples of tuples count as any object."""
    if len(elements) > LONGEST_TUPLE:
        return "(scalar)" if all(one.kind == "scalar" for one in elements) else "object"
    kinds = [one.kind if one.kind.count("(") < 2 and " " not in one.kind else "object" for one in elements]
    return f"({','.join(kinds)})"
