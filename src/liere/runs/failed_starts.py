"""Removal of a run that failed before anything was saved, so that the corrected command finds its folder free."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from liere.errors import InputError
from liere.runs.run import Run

__all__ = ["remove_failed_start"]


def remove_failed_start(run: Run) -> None:
    """Remove the folder of a run that this command created, unless something was saved or another process uses it."""
    if not run.is_new:
        return
    with suppress(InputError, OSError), run.lock():  # otherwise the folder stays
        if _has_saved(run):
            return
        prefix = f".{run.folder.name}.{os.getpid()}-"  # `remove_killed_starts` knows it
        with tempfile.TemporaryDirectory(dir=run.folder.parent, prefix=prefix) as temporary:
            run.folder.replace(Path(temporary) / "new")


def _has_saved(run: Run) -> bool:
    """Return whether a run has a checkpoint, weights, a result or an entry in its log."""
    files = (run.result_file, run.evaluation_file, run.final_weights, run.best_weights)
    is_logged = next(run.metric_rows(), None) is not None
    return is_logged or any(file.exists() for file in files) or any(run.checkpoints.iterdir())
