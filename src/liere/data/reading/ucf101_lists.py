"""The official lists of training and test videos of UCF101, a data set of 101 human actions."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from liere.data.reading.file_table import FileTable
from liere.errors import InputError
from liere.files.reading import read_bytes, shorten

__all__ = ["list_videos", "read_classes"]

LISTS = "ucfTrainTestlist"
VIDEOS = "UCF-101"
LIST_BYTES = 10_000_000  # real lists have half a million bytes


def read_classes(root: Path) -> tuple[str, ...]:
    """Return the names of the classes in the order of `classInd.txt`.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If it is damaged.
    """
    file = root / LISTS / "classInd.txt"
    found: dict[int, str] = {}
    seen = {".", ".."}  # names that would lead to other folders
    for place, words in _lines(file):
        if len(words) != 2 or not words[0].isdecimal() or len(words[0]) > 9:
            raise InputError(
                f"{place} must be a number and a class, got {shorten(repr(' '.join(words)))}: unpack the lists again"
            )
        if words[1] in seen:
            raise InputError(f"{place} has the repeated or invalid class {shorten(words[1])!r}: unpack the lists again")
        seen.add(words[1])
        found[int(words[0])] = words[1]
    if sorted(found) != list(range(1, len(found) + 1)):
        raise InputError(f"{file} must number the classes from 1 to {len(found)}: unpack the lists again")
    return tuple(found[number] for number in sorted(found))


def list_videos(root: Path, split: str, fold: int = 1) -> FileTable:
    """Return the videos of an official list.

    All training and test videos of the fold must exist.

    Args:
        root: Folder that contains the lists, `ucfTrainTestlist`, and the videos, `UCF-101/<class>` or `<class>`.
        split: `"train"` or `"test"`.
        fold: 1, 2 or 3.

    Raises:
        FileNotFoundError: If a list or listed videos are missing.
        ValueError: If a list is damaged, or a video is listed twice.
    """
    classes = read_classes(root)
    folder = root / VIDEOS if (root / VIDEOS).is_dir() else root
    listed = {}
    for name in ("train", "test"):
        file = root / LISTS / f"{name}list{fold:02}.txt"
        listed[name] = list(_read_list(file, classes))
        _check_videos(file, folder, [path for path, _ in listed[name]])
    _check_repeated(root / LISTS, fold, [path for name in listed for path, _ in listed[name]])
    return FileTable(folder, listed[split])


def _read_list(file: Path, classes: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Yield paths and labels numbered from 0; training lists also give the label, numbered from 1."""
    labels = {name: label for label, name in enumerate(classes)}
    for place, (path, *number) in _lines(file):
        label = labels.get(path.partition("/")[0])
        if label is None:
            raise InputError(
                f"{place} has a class that is not in classInd.txt, got {shorten(path)!r}: unpack the lists again"
            )
        if number not in ([], [str(label + 1)]):
            raise InputError(
                f"{place} has the class {shorten(' '.join(number))}, but classInd.txt has {label + 1} for "
                f"{shorten(path)!r}: "
                "unpack the lists again"
            )
        yield path, label


def _lines(file: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the location and the words of each nonempty line."""
    if not file.exists():
        raise FileNotFoundError(
            f"{file} is missing: unpack the official lists of UCF101 there (docs/how-to/data-sets.md says where to get "
            "them), or "
            "set --data.root to the folder of the data set"
        )
    for number, line in enumerate(read_bytes(file, LIST_BYTES).decode("utf-8-sig", errors="replace").splitlines(), 1):
        if words := line.split():
            yield f"{file}, line {number},", words


def _check_videos(file: Path, folder: Path, paths: list[str]) -> None:
    if not paths:
        raise InputError(f"{file} is empty: unpack the lists again")
    there = {
        f"{name}/{video}" for name in {path.partition("/")[0] for path in paths} for video in _names(folder / name)
    }
    if missing := [path for path in paths if path not in there]:
        raise FileNotFoundError(
            f"{len(missing)} of the {len(paths)} videos of {file} are missing, the first one is {folder / missing[0]}: "
            "unpack the videos again"
        )


def _check_repeated(folder: Path, fold: int, paths: list[str]) -> None:
    """Raise `ValueError` if a video is listed twice: tests on training videos would look too good."""
    if len(set(paths)) < len(paths):
        path, count = Counter(paths).most_common(1)[0]
        raise InputError(
            f"{folder} lists {shorten(path)!r} {count} times in trainlist{fold:02}.txt and testlist{fold:02}.txt "
            "together: unpack the lists again"
        )


def _names(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []
