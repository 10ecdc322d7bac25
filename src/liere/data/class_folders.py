"""Files sorted into folders: `root/<split>/<class>/<file>`, as torchvision's `ImageFolder` has them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from liere.data.file_table import FileTable
from liere.errors import InputError

__all__ = ["find_classes", "list_files", "split_folder"]

SPLITS = ("train", "val", "test")
NAMED_AT_MOST = 5


def find_classes(root: Path, suffixes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the classes, in order: the folders in `root/train`.

    Those in `root/val` and `root/test`, where these exist, must be the same, and none may be empty.

    Args:
        root: Folder of the data set.
        suffixes: How the names of files end, in small letters.

    Raises:
        FileNotFoundError: If there is no `root/train`.
        ValueError: If a class folder is missing, too many, or without files.
    """
    _require(root, "train")
    found = {split: _class_names(root / split) for split in SPLITS if (root / split).is_dir()}
    for split, names in found.items():
        for one, other in ((split, "train"), ("train", split)):
            if missing := sorted(set(found[other]) - set(found[one])):
                raise InputError(
                    f"{root / one} has no class folder {_some(missing)}, which {root / other} has: "
                    "the splits must have the same class folders"
                )
        if empty := [name for name in names if not any(_files(root / split / name, suffixes))]:
            raise InputError(
                f"there is no file that ends in {', '.join(suffixes)} in {root / split}{os.sep}{_some(empty)}: "
                "put some there, or remove the class from all splits"
            )
    return tuple(found["train"])


def split_folder(root: Path, split: str, *, held_out: bool = False) -> Path:
    """Return the folder whose files a split is made of.

    `"val"` is made of `root/train` where a part of it is held out; otherwise `"val"` and `"test"` stand in for each
    other where only one is there.

    Raises:
        FileNotFoundError: If it is not there.
    """
    if split == "train" or (split == "val" and held_out):
        return _require(root, "train")
    others = ("val", "test") if split == "val" else ("test", "val")
    for name in others:
        if (root / name).is_dir():
            return root / name
    raise FileNotFoundError(
        f"there is neither {root / 'val'} nor {root / 'test'}: make one with a folder a class"
        + (", or validate with a part of the training examples, like --data.holdout 0.1" if split == "val" else "")
    )


def list_files(folder: Path, classes: tuple[str, ...], suffixes: tuple[str, ...]) -> FileTable:
    """Return all files of the classes, in order of their names; hidden ones and others are left out.

    Args:
        folder: Folder that holds a folder for each class; folders in these are looked into as well.
        classes: Names of the classes: their places are the labels.
        suffixes: How the names of files end, in small letters.
    """
    return FileTable(
        folder,
        (
            (f"{name}/{file}", label)
            for label, name in enumerate(classes)
            for file in sorted(_files(folder / name, suffixes))
        ),
    )


def _require(root: Path, split: str) -> Path:
    if not (root / split).is_dir():
        raise FileNotFoundError(
            f"there is no folder {root / split}: it must hold a folder a class (see docs/data.md); "
            "say with --data.root where the data set is"
        )
    return root / split


def _class_names(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    if not names:
        raise InputError(f"{folder} has no class folders: sort its files into a folder a class, or move it away")
    return names


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
