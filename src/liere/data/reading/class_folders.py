"""Files sorted into folders: `root/<split>/<class>/<file>`, as torchvision's `ImageFolder` has them, or unsplit."""

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

__all__ = ["find_classes", "list_split"]

NAMED_AT_MOST = 5


def find_classes(root: Path, suffixes: tuple[str, ...], *, may_lack_splits: bool = False) -> tuple[str, ...]:
    """Return the names of the classes, in order: the folders in `root/train`.

    Those in `root/val` and `root/test`, where these exist, must be the same, and none may be empty.

    Args:
        root: Folder of the data set.
        suffixes: How the names of files end, in small letters.
        may_lack_splits: Whether classes may be folders of `root` itself, where that has none for splits.

    Raises:
        FileNotFoundError: If there is no `root/train`.
        ValueError: If a class folder is missing, too many, or without files.
    """
    if may_lack_splits and _lacks_splits(root):
        return _find_undivided(root, suffixes)
    if not (root / "train").is_dir():
        raise FileNotFoundError(
            f"there is no folder {root / 'train'}: it must hold a folder per class (see docs/data.md); "
            "say with --data.root where the data set is"
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
    """Return the files of a split, in order of their names; hidden ones and others are left out.

    `"val"` and `"test"` stand in for each other where only one is there. Files of a folder without splits are divided
    by `seed` and their names, class by class, and that is told once.

    Args:
        root: Folder of the data set.
        split: `"train"`, `"val"` or `"test"`.
        classes: Names of the classes: their places are the labels.
        suffixes: How the names of files end, in small letters.
        seed: Decides who goes where in a folder without splits.

    Raises:
        FileNotFoundError: If there is neither `root/val` nor `root/test`.
        ValueError: If there are too few files to divide.
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
        f"there is neither {root / 'val'} nor {root / 'test'}: make one with a folder per class"
        + (", or validate with a part of the training examples, like --data.holdout 0.1" if split == "val" else "")
    )


def _lacks_splits(root: Path) -> bool:
    """Return whether a folder has folders, but none for splits."""
    return root.is_dir() and not any((root / split).is_dir() for split in SPLITS) and bool(_folders(root))


def _find_undivided(root: Path, suffixes: tuple[str, ...]) -> tuple[str, ...]:
    names = _class_names(root)
    for name in names:
        if (root / name / "train").is_dir():
            raise InputError(f"{root / name} is a data set, not a class, since it has a folder 'train': use it as root")
    _check_filled(root, names, suffixes, "remove the folder")
    return tuple(names)


def _divided(root: Path, split: str, files: tuple[tuple[str, int], ...], seed: int) -> FileTable:
    labels = torch.tensor([label for _, label in files])
    parts = divide(labels, torch.tensor([stable_key(os.fsencode(name)) for name, _ in files]), seed)
    if not len(parts["test"]):
        raise InputError(f"{root} has no class with two files, so none is left to test with: add some")
    if not len(parts["val"]):
        parts["val"] = parts["test"]
    _tell_division(root, seed, *(len(parts[name]) for name in SPLITS))
    return FileTable(root, files).select(parts[split])


@lru_cache
def _tell_division(root: Path, seed: int, train: int, val: int, test: int) -> None:
    warn(
        f"liere: {root} has no folder 'train', so its files are divided by data.seed {seed}, class by class: "
        f"{train:,} to train, {val:,} to validate and {test:,} to test with"
    )


def _named_files(folder: Path, classes: tuple[str, ...], suffixes: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Yield the files of the classes with their labels; folders in class folders are looked into as well."""
    for label, name in enumerate(classes):
        for file in sorted(_files(folder / name, suffixes)):
            yield f"{name}/{file}", label


def _folders(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))


def _class_names(folder: Path) -> list[str]:
    names = _folders(folder)
    if not names:
        raise InputError(f"{folder} has no class folders: sort its files into a folder per class, or move it away")
    return names


def _check_filled(folder: Path, names: list[str], suffixes: tuple[str, ...], remedy: str) -> None:
    if empty := [name for name in names if not any(_files(folder / name, suffixes))]:
        raise InputError(
            f"there is no file that ends in {', '.join(suffixes)} in {folder}{os.sep}{_some(empty)}: "
            f"put some there, or {remedy}"
        )


def _files(folder: Path, suffixes: tuple[str, ...]) -> Iterator[str]:
    """Yield the files in a folder and in those below it, however deep these are nested."""
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
