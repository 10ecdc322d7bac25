"""Examples that are decoded from files when they are asked for; files that cannot be are left out."""

from __future__ import annotations

import errno
import sys
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from liere.data.examples import Batch, DataFacts, ExampleSet
from liere.data.file_table import FileTable
from liere.errors import InputError, visible
from liere.shapes import Int

__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "DecodedFiles",
    "TooManyUnreadableError",
    "UnreadableError",
    "is_trouble_of_the_machine",
]

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
MACHINE_ERRORS = (errno.EMFILE, errno.ENFILE, errno.EIO, errno.ENOMEM, errno.ESTALE)


class UnreadableError(Exception):
    """A file cannot be decoded.

    Args:
        reason: Why: what it says, or an error.
    """

    def __init__(self, reason: str | Exception) -> None:
        text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        super().__init__(text.splitlines()[0])


def is_trouble_of_the_machine(error: Exception) -> bool:
    """Return whether an error is not of the file: memory, open files, or a disk that does not answer."""
    return isinstance(error, MemoryError) or getattr(error, "errno", None) in MACHINE_ERRORS


class TooManyUnreadableError(InputError):
    """More files than allowed cannot be decoded.

    `DataLoader` makes an error of a worker anew, with the worker's traceback as its message: the last line is kept.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message.strip().rpartition(f"{type(self).__name__}: ")[2])


class DecodedFiles(ExampleSet):
    """Labelled files, decoded when they are asked for.

    A file that cannot be decoded is named on standard error, once, and left out of its batch. Worker processes count
    together. Where nothing of a batch is left, the examples after those that were asked for take their place.

    Args:
        files: The files.
        facts: Of the data set.
        max_unreadable: How many files may be left out.
    """

    can_skip = True

    def __init__(self, files: FileTable, facts: DataFacts, *, max_unreadable: int = 10) -> None:
        self.files, self._facts, self.max_unreadable = files, facts, max_unreadable
        self._is_unreadable = torch.zeros(len(files), dtype=torch.bool).share_memory_()

    @property
    def facts(self) -> DataFacts:
        """What a model has to know of it."""
        return self._facts

    @property
    def labels(self) -> Int[Tensor, "examples"]:
        """Labels of all examples."""
        return self.files.labels

    def __len__(self) -> int:
        return len(self.files)

    def load(self, indices: Sequence[int], words: Int[Tensor, "batch"] | None = None) -> Batch:
        """Return a batch, augmented if there are random words, without what cannot be decoded."""
        for shift in range(len(self)):
            batch = self._load_readable([(index + shift) % len(self) for index in indices], words)
            if batch is not None:
                return batch
        raise InputError(f"none of the {len(self)} files of {self.files.folder} can be read")

    @abstractmethod
    def decode(self, path: Path, word: int | None) -> Tensor:
        """Return an example.

        Args:
            path: Its file.
            word: The random word that decides its augmentation; None for an example as it is tested.

        Raises:
            UnreadableError: If the file cannot be decoded.
        """

    def _load_readable(self, indices: list[int], words: Tensor | None) -> Batch | None:
        ids, images = [], []
        for index, word in zip(indices, [None] * len(indices) if words is None else words.tolist(), strict=True):
            path = self.files[index]
            try:
                images.append(self.decode(path, word))
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
                f"cannot read {path} ({error}): that is file {count} of {self.files.folder} that cannot be read, and "
                f"data.max_unreadable is {self.max_unreadable}; repair the files, or allow more"
            )
        line = f"cannot read {path} ({error}): skipped, {count} of at most {self.max_unreadable}"
        print(f"liere: warning: {visible(line)}", file=sys.stderr, flush=True)
