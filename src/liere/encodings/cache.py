"""Rotations that are kept from one forward pass to the next while nothing changes, and never longer."""

from __future__ import annotations

from collections.abc import Iterable
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
            and (mine.data_ptr(), self.version) == (other.data_ptr(), other._version)
        )


class _Entry(NamedTuple):
    sources: list[Snapshot]
    rotations: list[Tensor]


class RotationCache:
    """The rotations of the last few sets of positions, each with what it was made from.

    It belongs to one module: a copy of the module, or one that was saved and loaded, begins with an empty cache.

    Args:
        size: How many sets of positions to keep.
    """

    def __init__(self, size: int = 2) -> None:
        self.size = size
        self._entries: list[_Entry] = []

    def find(self, sources: Iterable[Tensor]) -> list[Tensor] | None:
        """Return what was kept for exactly these sources."""
        sources = list(sources)
        for index, entry in enumerate(self._entries):
            if len(entry.sources) == len(sources) and all(
                snapshot.matches(source) for snapshot, source in zip(entry.sources, sources, strict=True)
            ):
                self._entries.insert(0, self._entries.pop(index))
                return entry.rotations
        return None

    def keep(self, sources: Iterable[Tensor], rotations: list[Tensor]) -> None:
        """Remember rotations, and forget those that were not used for longest."""
        self._entries.insert(0, _Entry([Snapshot(source) for source in sources], rotations))
        del self._entries[self.size :]

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)

    def __deepcopy__(self, memo: dict[int, object]) -> RotationCache:
        return RotationCache(self.size)

    def __reduce__(self) -> tuple[type[RotationCache], tuple[int]]:
        return RotationCache, (self.size,)
