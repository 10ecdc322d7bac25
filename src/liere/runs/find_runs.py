"""Search for runs in the folders of runs and comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from liere.runs.run import Run, open_run

__all__ = ["find_runs"]


def find_runs(folders: Sequence[Path]) -> list[Run]:
    """Return the runs in these folders, each of which is a run or a comparison.

    Raises:
        FileNotFoundError: If a folder is neither.
    """
    runs = []
    for folder in folders:
        if (folder / "config.yaml").exists():
            runs.append(open_run(folder))
            continue
        inside = sorted(file.parent for file in folder.glob("runs/*/config.yaml"))
        if not inside:
            raise FileNotFoundError(
                f"{folder} is neither a run nor a comparison, since it has no config.yaml and no runs/: check the path"
            )
        runs += [open_run(found) for found in inside]
    return runs
