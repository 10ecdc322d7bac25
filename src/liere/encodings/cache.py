"""Rotations that are kept from one forward pass to the next while nothing changes, and never longer."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["RotationCache", "Snapshot"]


class Snapshot:
    """What a tensor was, to notice that it is not the same any more.

    In host memory values are compared, so that nothing escapes. On other devices that would wait for the device: there
    it is the memory and the count of in-place changes, which do not tell of changes through `.data`.
    """

    def __init__(self, tensor: Tensor) -> None:
        self.in_host_memory = tensor.device.type == "cpu"
        # Keeping the memory alive keeps its address from being given to another tensor.
        self.tensor = tensor.detach().clone() if self.in_host_memory else tensor.detach()
        self.version = -1 if self.in_host_memory or tensor.is_inference() else tensor._version

    def matches(self, other: Tensor) -> bool:
        """Return whether the tensor is surely what it was."""
        mine = self.tensor
        if (mine.device, mine.dtype, mine.shape) != (other.device, other.dtype, other.shape):
            return False
        if self.in_host_memory:
            return torch.equal(mine, other)
        return (
            self.version >= 0
            and not other.is_inference()
            and (mine.data_ptr(), mine.stride(), self.version) == (other.data_ptr(), other.stride(), other._version)
        )


class _Entry(NamedTuple):
    sources: list[Snapshot]
    rotations: list[Tensor]
    versions: list[int]

    def matches(self, sources: list[Tensor]) -> bool:
        """Return whether it was made from these, and nobody wrote to it since."""
        return (
            len(self.sources) == len(sources)
            and all(snapshot.matches(source) for snapshot, source in zip(self.sources, sources, strict=True))
            and self.versions == [R._version for R in self.rotations]
        )


class RotationCache:
    """The rotations of the last few sets of positions, each with what it was made from.

    It belongs to one module: a copy of the module, or one that was saved and loaded, begins with an empty cache.

    Args:
        size: How many sets of positions to keep, for each key.
    """

    def __init__(self, size: int = 2) -> None:
        self.size = size
        self._entries: dict[Hashable, tuple[_Entry, ...]] = {}  # replaced, never changed: other threads may be reading

    def find(self, sources: Iterable[Tensor], key: Hashable = None) -> list[Tensor] | None:
        """Return what was kept for exactly these sources."""
        sources, entries = list(sources), self._entries.get(key, ())
        for entry in entries:
            if entry.matches(sources):
                self._entries[key] = (entry, *(other for other in entries if other is not entry))
                return entry.rotations
        return None

    def keep(self, sources: Iterable[Tensor], rotations: list[Tensor], key: Hashable = None) -> None:
        """Remember rotations, and forget those that were not used for longest."""
        entry = _Entry([Snapshot(source) for source in sources], rotations, [R._version for R in rotations])
        self._entries[key] = (entry, *self._entries.get(key, ()))[: self.size]

    def clear(self) -> None:
        """Forget everything."""
        self._entries = {}

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    def __deepcopy__(self, memo: dict[int, object]) -> RotationCache:
        return RotationCache(self.size)

    def __reduce__(self) -> tuple[type[RotationCache], tuple[int]]:
        return RotationCache, (self.size,)
