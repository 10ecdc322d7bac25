"""Your own arrays: `.npz` files of labeled images, volumes or videos."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import torch
from torch import Tensor

from liere.data.arrays import scale_size
from liere.data.augmentation import check_rand_augment
from liere.data.facts import DataFacts
from liere.data.reading.npz_parts import find_files, read_file, read_folder
from liere.data.reading.npz_pixels import statistics
from liere.data.reading.npz_splits import check_alike, check_classes, divide_part, number_labels
from liere.errors import InputError

__all__ = ["NpzArrays", "read_npz"]


@dataclass(frozen=True, eq=False)
class NpzArrays:
    """The contents of `.npz` files.

    Attributes:
        root: The file, or the folder of files.
        splits: Images `[examples, channels, *axes]`, uint8 or float32, and labels for `"train"`, `"test"` and, if it
            exists, `"val"`.
        facts: Facts of the arrays at their original size; mean and deviation are those of the training split.
        is_video: Whether the first axis is time.
        has_groups: Whether examples belong to groups that must stay in one split.
    """

    root: Path
    splits: dict[str, tuple[Tensor, Tensor]]
    facts: DataFacts
    is_video: bool
    has_groups: bool

    def part(self, split: str, *, holdout: float = 0.0) -> tuple[Tensor, Tensor]:
        """Return the images and labels that a split is drawn from.

        Args:
            split: `"train"`, `"val"` or `"test"`.
            holdout: Fraction of the training examples to validate with; with 0, `"val"` is the split of that name, or
                `"test"` if there is none.

        Raises:
            ValueError: If `holdout` is positive but the examples belong to groups.
        """
        if holdout and self.has_groups:
            raise InputError(
                f"data.holdout {holdout} would break up the groups of {self.root}: remove it, and add a separate "
                "validation split if there is none"
            )
        if split == "val":
            split = "train" if holdout else "val" if "val" in self.splits else "test"
        return self.splits[split]

    @cached_property
    def sha256(self) -> str:
        """SHA-256 digest of the arrays, independent of how they are compressed."""
        digest = hashlib.sha256()
        for split in sorted(self.splits):
            for array in self.splits[split]:
                digest.update(f"{split} {tuple(array.shape)} {array.dtype}".encode())
                digest.update(array.contiguous().numpy().tobytes())
        return digest.hexdigest()

    def size_at(self, side: int | None) -> tuple[int, ...]:
        """Return the axis lengths with the last axis scaled to `side` and the others in proportion, except frames.

        Raises:
            ValueError: If the result is too large, which happens when the last axis is by far the shortest.
        """
        return scale_size(self.facts.image_size, side, f"the examples of {self.root}", keep_first=self.is_video)

    def check_rand_augment(self) -> None:
        """Raise `ValueError` if RandAugment does not support these images."""
        check_rand_augment(self.splits["train"][0].dtype, self.facts, str(self.root))


def read_npz(root: Path, seed: int = 0) -> NpzArrays:
    """Return the arrays of a file, or of a folder with `train.npz`, `test.npz` and optionally `val.npz`.

    A file is read again only if it has changed. A file without splits is split by `divide`.

    Args:
        root: The file or folder.
        seed: Seed for splitting a file without splits.

    Raises:
        FileNotFoundError: If it does not exist.
        ValueError: If it is damaged or lacks a required array.
    """
    files = find_files(root)
    stamps = tuple((str(file.resolve()), file.stat().st_mtime_ns, file.stat().st_size) for file in files.values())
    return _read(root, seed, stamps)


@lru_cache(maxsize=1)
def _read(root: Path, seed: int, stamps: tuple[tuple[str, int, int], ...]) -> NpzArrays:
    """Return the arrays of files; `stamps` invalidates the cache when a file changes."""
    files = find_files(root)
    if "" in files:
        kind, parts, classes = read_file(root)
    else:
        kind, parts, classes = read_folder(files)
    names, labels = number_labels(parts, classes)
    if list(parts) == [""]:
        _, images, _, groups = parts[""]
        chosen = divide_part(root, images, labels[""], groups, seed)
        splits = {split: (torch.from_numpy(images[i]), torch.from_numpy(labels[""][i])) for split, i in chosen.items()}
    else:
        check_alike(parts)
        splits = {
            split: (torch.from_numpy(part.images), torch.from_numpy(labels[split])) for split, part in parts.items()
        }
    check_classes(root, splits, names)
    images = splits["train"][0].numpy()
    mean, std = statistics(images)
    has_groups = any(part.groups is not None for part in parts.values())
    return NpzArrays(
        root, splits, DataFacts(names, images.shape[1], images.shape[2:], mean, std), kind == "videos", has_groups
    )
