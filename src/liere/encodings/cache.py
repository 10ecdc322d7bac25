"""A cache that keeps rotations from one forward pass to the next for as long as their inputs stay the same."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["RotationCache", "Snapshot"]


class Snapshot:
    """The state of a tensor at one time, to detect later changes.

    In host memory, values are compared, which detects every change. On other devices that would synchronize, so memory
    address and version counter are compared instead, which does not detect changes through `.data`.
    """

    def __init__(self, tensor: Tensor) -> None:
        self.in_host_memory = tensor.device.type == "cpu"
        # Keeping the memory alive prevents another tensor from getting its address.
        self.tensor = tensor.detach().clone() if self.in_host_memory else tensor.detach()
        self.version = -1 if self.in_host_memory or tensor.is_inference() else tensor._version

    def matches(self, other: Tensor) -> bool:
        """Return whether the tensor is certainly unchanged."""
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
        """Return whether the rotations were made from these sources and have not been written to since."""
        return (
            len(self.sources) == len(sources)
            and all(snapshot.matches(source) for snapshot, source in zip(self.sources, sources, strict=True))
            and self.versions == [R._version for R in self.rotations]
        )


class RotationCache:
    """The rotations of the last few sets of positions, each with the tensors it was made from.

    It belongs to one module: a copy of the module, or one that was saved and loaded, starts with an empty cache.

    Args:
        size: Number of sets of positions to keep per key.
    """

    def __init__(self, size: int = 2) -> None:
        self.size = size
        self._entries: dict[Hashable, tuple[_Entry, ...]] = {}  # replaced, never mutated: other threads may be reading

    def find(self, sources: Iterable[Tensor], key: Hashable = None) -> list[Tensor] | None:
        """Return the rotations cached for exactly these sources, or None."""
        sources, entries = list(sources), self._entries.get(key, ())
        for entry in entries:
            if entry.matches(sources):
                self._entries[key] = (entry, *(other for other in entries if other is not entry))
                return entry.rotations
        return None

    def keep(self, sources: Iterable[Tensor], rotations: list[Tensor], key: Hashable = None) -> None:
        """Cache rotations, and evict the least recently used ones."""
        entry = _Entry([Snapshot(source) for source in sources], rotations, [R._version for R in rotations])
        self._entries[key] = (entry, *self._entries.get(key, ()))[: self.size]

    def clear(self) -> None:
        """Remove all entries."""
        self._entries = {}

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    def __deepcopy__(self, memo: dict[int, object]) -> RotationCache:
        return RotationCache(self.size)

    def __reduce__(self) -> tuple[type[RotationCache], tuple[int]]:
        return RotationCache, (self.size,)
