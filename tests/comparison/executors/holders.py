"""Who works on a run right now."""

from __future__ import annotations

from liere.runs.lease_files import LeaseFiles
from liere.runs.run import Run

__all__ = ["holder_of", "parent_of"]


def holder_of(run: Run) -> int | None:
    """Return the id of the process that has the run, if any."""
    files = LeaseFiles(run.folder)
    state = next((state for state in map(files.read, files.numbers()) if state is not None), None)
    return None if state is None or state.holder is None or state.has_ended() else state.holder.pid


def parent_of(pid: int) -> int | None:
    """Return the id of the parent of a process; None if the process is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except FileNotFoundError:
        return None
