"""Folders nested so deeply that recursive functions fail, among them those with which pytest removes old folders."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["deep_folder"]


@contextmanager
def deep_folder(parent: Path) -> Iterator[Path]:
    """Create a folder at a depth that Python's recursion limit does not allow, and remove it again."""
    folder = parent
    folders = [folder := folder / "d" for _ in range(1_100)]
    for one in folders:
        os.mkdir(one)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
        for one in reversed(folders[:-1]):
            os.rmdir(one)
