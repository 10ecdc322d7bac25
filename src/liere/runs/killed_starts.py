"""What processes that were killed while they made the folder of a run have left."""

from __future__ import annotations

import glob
import re
import shutil
from pathlib import Path

from liere.runs.locking import file_lock
from liere_command.processes import is_alive

__all__ = ["remove_killed_starts"]


def remove_killed_starts(folder: Path) -> None:
    """Remove what processes that were killed in `create_run` have left beside the folder of a run."""
    for left in folder.parent.glob(f".{glob.escape(folder.name)}.*-*"):
        start = re.fullmatch(r"([0-9]{1,9})-[a-z0-9_]{8}", left.name.removeprefix(f".{folder.name}."))
        try:
            if start is None or left.is_symlink() or not {path.name for path in left.iterdir()} <= {".lock", "new"}:
                continue
            # Without a lock it may be a moment old, and its process about to take the lock.
            if not (left / ".lock").exists() and is_alive(int(start[1])):
                continue
            with file_lock(left / ".lock"):
                shutil.rmtree(left, ignore_errors=True)
        except OSError:
            continue  # a file, or in use by a process that is alive
