"""Arrays of one's own: `.npz` files of images, volumes or videos with a label each."""

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
    """What is in the files.

    Attributes:
        root: The file, or the folder of files.
        splits: Images `[examples, channels, *axes]`, uint8 or float32, and labels, of `"train"`, `"test"` and, if there
            is such a split, `"val"`.
        facts: Of the arrays as they are; mean and deviation of the training split.
        is_video: Whether the first axis is time.
        has_groups: Whether examples belong together in groups that a split must not tear apart.
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
            holdout: Share of the training examples to validate with; with 0, `"val"` is the split of that name, or
                `"test"` where there is none.

        Raises:
            ValueError: If examples were to be held out one by one, but belong together in groups.
        """
        if holdout and self.has_groups:
            raise InputError(
                f"data.holdout {holdout} would tear the groups of {self.root} apart: leave it out, and give a "
                "validation split of its own if there is none"
            )
        if split == "val":
            split = "train" if holdout else "val" if "val" in self.splits else "test"
        return self.splits[split]

    @cached_property
    def sha256(self) -> str:
        """Digest of the arrays, which does not depend on how they are packed."""
        digest = hashlib.sha256()
        for split in sorted(self.splits):
            for array in self.splits[split]:
                digest.update(f"{split} {tuple(array.shape)} {array.dtype}".encode())
                digest.update(array.contiguous().numpy().tobytes())
        return digest.hexdigest()

    def size_at(self, side: int | None) -> tuple[int, ...]:
        """Return the length of each axis where the last one is `side`: the others in proportion, but all frames.

        Raises:
            ValueError: If that is a lot, as it is where the last axis of the arrays is by far the shortest.
        """
        return scale_size(self.facts.image_size, side, f"the examples of {self.root}", keep_first=self.is_video)

    def check_rand_augment(self) -> None:
        """Raise `ValueError` if these are not the images that RandAugment is made for."""
        check_rand_augment(self.splits["train"][0].dtype, self.facts, str(self.root))


def read_npz(root: Path, seed: int = 0) -> NpzArrays:
    """Return what a file, or a folder with `train.npz`, `test.npz` and maybe `val.npz`, holds.

    A file is read once as long as it does not change. One without splits of its own is divided by `divide`.

    Args:
        root: The file or folder.
        seed: Decides who goes where in a file without splits.

    Raises:
        FileNotFoundError: If it is not there.
        ValueError: If it is damaged, or does not hold what it should.
    """
    files = find_files(root)
    stamps = tuple((str(file.resolve()), file.stat().st_mtime_ns, file.stat().st_size) for file in files.values())
    return _read(root, seed, stamps)


@lru_cache(maxsize=1)
def _read(root: Path, seed: int, stamps: tuple[tuple[str, int, int], ...]) -> NpzArrays:
    """Read files; `stamps` are here to tell those that have changed."""
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
