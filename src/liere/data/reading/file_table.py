"""A compact table of labeled files: three tensors that worker processes share, even for a million files."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from liere.shapes import Int

__all__ = ["FileTable"]


class FileTable:
    """Paths below a folder, with labels.

    Args:
        folder: The folder.
        files: Path of each file below it, and its label.

    Example:
        >>> table = FileTable(Path("train"), [("cat/1.png", 0), ("dog/1.png", 1), ("dog/2.png", 1)])
        >>> len(table), table[2].as_posix(), table.labels.tolist()
        (3, 'train/dog/2.png', [0, 1, 1])
        >>> table.select(torch.tensor([2, 0]))[0].as_posix()
        'train/dog/2.png'
    """

    def __init__(self, folder: Path, files: Iterable[tuple[str, int]]) -> None:
        names, ends, labels = bytearray(), array("q", [0]), array("q")
        for name, label in files:
            names += os.fsencode(name)
            ends.append(len(names))
            labels.append(label)
        self.folder = folder
        self.labels = torch.from_numpy(np.array(labels))
        self._names = torch.from_numpy(np.array(names))
        self._bounds = torch.from_numpy(np.stack([ends[:-1], ends[1:]], axis=1))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Path:
        start, stop = self._bounds[index].tolist()
        return self.folder / os.fsdecode(self._names[start:stop].numpy().tobytes())

    def select(self, indices: Int[Tensor, "kept"]) -> FileTable:
        """Return a table of the selected files, in this order."""
        part = FileTable(self.folder, [])
        part.labels, part._bounds, part._names = self.labels[indices], self._bounds[indices], self._names
        return part
