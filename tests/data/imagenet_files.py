"""Helpers to load and damage files in ImageNet's layout."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.data.file_archives import WNIDS
from tests.data.sections import open_data

__all__ = ["damage", "load_imagenet"]


def load_imagenet(
    root: Path,
    split: str = "train",
    *,
    name: str = "imagenet",
    size: int | None = None,
    length: int | None = None,
    **fields: Any,
) -> Any:
    """Return a split of image files in class folders, opened as from a configuration."""
    return open_data(name, root=str(root), **fields).load(split, size=size, length=length)


def damage(root: Path, numbers: Iterable[int], split: str = "train", wnid: str = WNIDS[0]) -> list[Path]:
    """Truncate files of a class, and return their paths."""
    numbers = list(numbers)
    files = sorted((root / split / wnid).glob("*.JPEG"))
    for number in numbers:
        files[number].write_bytes(files[number].read_bytes()[:200])
    return [files[number] for number in numbers]
