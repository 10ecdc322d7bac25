"""Files sorted into class folders, `root/<split>/<class>/<file>` or, without splits, `root/<class>/<file>`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import torch

from liere.data.reading.file_table import FileTable
from liere.data.subsets import SPLITS, divide, stable_key
from liere.errors import InputError
from liere.terminal.messages import warn

__all__ = ["find_classes", "find_files", "list_split"]

NAMED_AT_MOST = 5


def find_classes(root: Path, suffixes: tuple[str, ...], *, may_lack_splits: bool = False) -> tuple[str, ...]:
    """Return the names of the classes: the folders in `root/train`, sorted.

    The folders in `root/val` and `root/test`, if these exist, must be the same, and none may be empty.

    Args:
        root: Folder of the data set.
        suffixes: Lowercase suffixes of the files.
        may_lack_splits: Whether class folders may be in `root` itself if it has no folders for splits.

    Raises:
        FileNotFoundError: If there is no `root/train`.
        ValueError: If a class folder is missing, unexpected or empty.
    """
    if may_lack_splits and _lacks_splits(root):
        return _find_undivided(root, suffixes)
    if not (root / "train").is_dir():
        raise FileNotFoundError(
            f"there is no folder {root / 'train'} with one folder per class (see docs/how-to/data-sets.md): "
            "set --data.root to the folder of the data set"
        )
    found = {split: _class_names(root / split) for split in SPLITS if (root / split).is_dir()}
    for split, names in found.items():
        for one, other in ((split, "train"), ("train", split)):
            if missing := sorted(set(found[other]) - set(found[one])):
                raise InputError(
                    f"{root / one} has no class folder {_some(missing)}, which {root / other} has: "
                    "the splits must have the same class folders"
                )
        _check_filled(root / split, names, suffixes, "remove the class from all splits")
    return tuple(found["train"])


def list_split(
    root: Path, split: str, classes: tuple[str, ...], suffixes: tuple[str, ...], *, seed: int = 0
) -> FileTable:
    """Return the files of a split, sorted by name, without hidden files and files with other suffixes.

    `"val"` and `"test"` replace each other if only one of them exists. Files of a folder without splits are split by
    `seed` and their names, class by class, and a message about it is printed once.

    Args:
        root: Folder of the data set.
        split: `"train"`, `"val"` or `"test"`.
        classes: Names of the classes in the order of their labels.
        suffixes: Lowercase suffixes of the files.
        seed: Seed for splitting a folder without splits.

    Raises:
        FileNotFoundError: If there is neither `root/val` nor `root/test`.
        ValueError: If there are too few files to split.
    """
    if _lacks_splits(root):
        return _divided(root, split, tuple(_named_files(root, classes, suffixes)), seed)
    folder = _split_folder(root, split)
    return FileTable(folder, _named_files(folder, classes, suffixes))


def _split_folder(root: Path, split: str) -> Path:
    others = {"train": ("train",), "val": ("val", "test"), "test": ("test", "val")}[split]
    for name in others:
        if (root / name).is_dir():
            return root / name
    raise FileNotFoundError(
        f"there is neither {root / 'val'} nor {root / 'test'}: create one with one folder per class"
        + (", or validate with some of the training examples, for example --data.holdout 0.1" if split == "val" else "")
    )


def _lacks_splits(root: Path) -> bool:
    """Return whether a folder has subfolders but none for splits."""
    return root.is_dir() and not any((root / split).is_dir() for split in SPLITS) and bool(_folders(root))


def _find_undivided(root: Path, suffixes: tuple[str, ...]) -> tuple[str, ...]:
    names = _class_names(root)
    for name in names:
        if (root / name / "train").is_dir():
            raise InputError(
                f"{root / name} has a folder 'train', so it is a data set, not a class: use it as --data.root"
            )
    _check_filled(root, names, suffixes, "remove the folder")
    return tuple(names)


def _divided(root: Path, split: str, files: tuple[tuple[str, int], ...], seed: int) -> FileTable:
    labels = torch.tensor([label for _, label in files])
    parts = divide(labels, torch.tensor([stable_key(os.fsencode(name)) for name, _ in files]), seed)
    if not len(parts["test"]):
        raise InputError(f"{root} has no class with two or more files, so none is left for testing: add more files")
    if not len(parts["val"]):
        parts["val"] = parts["test"]
    _tell_division(root, seed, *(len(parts[name]) for name in SPLITS))
    return FileTable(root, files).select(parts[split])


@lru_cache
def _tell_division(root: Path, seed: int, train: int, val: int, test: int) -> None:
    warn(
        f"liere: {root} has no folder 'train', so its files are split by class with data.seed {seed}: "
        f"{train:,} for training, {val:,} for validation and {test:,} for testing"
    )


def _named_files(folder: Path, classes: tuple[str, ...], suffixes: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Yield the files of the classes with their labels, including those in subfolders."""
    for label, name in enumerate(classes):
        for file in sorted(find_files(folder / name, suffixes)):
            yield f"{name}/{file}", label


def _folders(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))


def _class_names(folder: Path) -> list[str]:
    names = _folders(folder)
    if not names:
        raise InputError(f"{folder} has no class folders: sort its files into one folder per class, or remove it")
    return names


def _check_filled(folder: Path, names: list[str], suffixes: tuple[str, ...], remedy: str) -> None:
    if empty := [name for name in names if not any(find_files(folder / name, suffixes))]:
        raise InputError(
            f"no file with the suffix {', '.join(suffixes)} in {folder}{os.sep}{_some(empty)}: add some, or {remedy}"
        )


def find_files(folder: Path, suffixes: tuple[str, ...]) -> Iterator[str]:
    """Yield the files in a folder and its subfolders at any depth, without hidden files."""
    prefixes = [""]
    while prefixes:
        prefix = prefixes.pop()
        with os.scandir(folder / prefix) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    prefixes.append(f"{prefix}{entry.name}/")
                elif entry.name.lower().endswith(suffixes):
                    yield prefix + entry.name


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMED_AT_MOST} more" if len(names) > NAMED_AT_MOST else ""
    return ", ".join(names[:NAMED_AT_MOST]) + more
