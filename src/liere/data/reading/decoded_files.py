"""Examples that are decoded from files on demand, skipping unreadable files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from liere.data.examples import Batch, ExampleSet
from liere.data.facts import DataFacts
from liere.data.reading.file_table import FileTable
from liere.errors import InputError, visible
from liere.shapes import Int
from liere.terminal.messages import warn

__all__ = ["DecodedFiles", "TooManyUnreadableError", "UnreadableError"]


class UnreadableError(Exception):
    """Raised when a file cannot be decoded.

    Args:
        reason: Message, or the error of the decoder.
    """

    def __init__(self, reason: str | Exception) -> None:
        text = getattr(reason, "strerror", None) or str(reason).strip() or type(reason).__name__
        super().__init__(visible(text))


class TooManyUnreadableError(InputError):
    """Raised when more files than allowed cannot be decoded."""


class DecodedFiles(ExampleSet):
    """Labeled files that are decoded on demand.

    A file that cannot be decoded is reported on standard error, once, and left out of its batch. Worker processes share
    one count. If nothing is left of a batch, the examples that follow it take its place.

    Args:
        files: The files.
        facts: Facts of the data set.
        max_unreadable: Maximum number of skipped files.
    """

    can_skip = True

    def __init__(self, files: FileTable, facts: DataFacts, *, max_unreadable: int = 10) -> None:
        self.files, self._facts, self.max_unreadable = files, facts, max_unreadable
        self._is_unreadable = torch.zeros(len(files), dtype=torch.bool).share_memory_()

    @property
    def facts(self) -> DataFacts:
        """Properties of the data set that a model needs."""
        return self._facts

    @property
    def labels(self) -> Int[Tensor, "examples"]:
        """Labels of all examples."""
        return self.files.labels

    def __len__(self) -> int:
        return len(self.files)

    def load(self, indices: Sequence[int], bits: Int[Tensor, "batch"] | None = None) -> Batch:
        """Return a batch without undecodable files, augmented if random bits are given."""
        for shift in range(len(self)):
            batch = self._load_readable([(index + shift) % len(self) for index in indices], bits)
            if batch is not None:
                return batch
        raise InputError(f"none of the {len(self)} files of {self.files.folder} can be read: replace them")

    @abstractmethod
    def decode(self, path: Path, bits: int | None) -> Tensor:
        """Return an example.

        Args:
            path: Its file.
            bits: Random bits that seed its augmentation; None for no augmentation, as in tests.

        Raises:
            UnreadableError: If the file cannot be decoded.
        """

    def _load_readable(self, indices: list[int], bits: Tensor | None) -> Batch | None:
        ids, images = [], []
        for index, own in zip(indices, [None] * len(indices) if bits is None else bits.tolist(), strict=True):
            path = self.files[index]
            try:
                images.append(self.decode(path, own))
            except UnreadableError as error:
                self._leave_out(index, path, error)
            else:
                ids.append(index)
        if not ids:
            return None
        places = torch.tensor(ids)
        return Batch(places, torch.stack(images), self.labels[places])

    def _leave_out(self, index: int, path: Path, error: UnreadableError) -> None:
        if self._is_unreadable[index]:
            return
        self._is_unreadable[index] = True
        count = int(self._is_unreadable.sum())
        if count > self.max_unreadable:
            raise TooManyUnreadableError(
                f"cannot read {path} ({error}), which is unreadable file {count} of {self.files.folder}, but "
                f"data.max_unreadable is {self.max_unreadable}: repair the files, or raise the limit"
            )
        warn(f"liere: warning: cannot read {path} ({error}): skipped ({count} of at most {self.max_unreadable})")
