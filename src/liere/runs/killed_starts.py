"""Cleanup after processes that were killed while they created the folder of a run, or wrote to it."""

from __future__ import annotations

import contextlib
import glob
import re
import shutil
from pathlib import Path

from liere.runs.locking import file_lock
from liere_command.processes import is_alive

__all__ = ["remove_killed_starts", "remove_unfinished_files"]


def remove_killed_starts(folder: Path) -> None:
    """Remove temporary folders next to a run that were left by processes killed in `create_run`."""
    for left in folder.parent.glob(f".{glob.escape(folder.name)}.*-*"):
        start = re.fullmatch(r"([0-9]{1,9})-[a-z0-9_]{8}", left.name.removeprefix(f".{folder.name}."))
        try:
            if start is None or left.is_symlink() or not {path.name for path in left.iterdir()} <= {".lock", "new"}:
                continue
            # A folder without a lock may be new, and its process about to take the lock.
            if not (left / ".lock").exists() and is_alive(int(start[1])):
                continue
            with file_lock(left / ".lock"):
                shutil.rmtree(left, ignore_errors=True)
        except OSError:
            continue  # a file, or in use by a live process


def remove_unfinished_files(folder: Path, checkpoints: Path) -> None:
    """Remove unfinished files of a run, and unfinished folders of shards among its checkpoints."""
    for left in folder.rglob(".*.tmp"):
        if left.parent == checkpoints and left.is_dir() and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)
        else:
            with contextlib.suppress(IsADirectoryError, FileNotFoundError):
                left.unlink()
