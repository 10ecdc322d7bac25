"""Export runs without weights: configuration, predictions and learning curves, small enough to commit."""

from __future__ import annotations

import json
from pathlib import Path

from liere.errors import InputError
from liere.files.reading import read_bytes
from liere.files.writing import write_atomically
from liere.runs.archive import SUFFIX, pack_files
from liere.runs.run import Run

__all__ = ["export_run"]

FILES = ("config.yaml", "result.json", "metrics.csv")
MOST_BYTES = 50_000_000  # per file; more than any valid file of a run needs


def export_run(run: Run, folder: Path) -> Path:
    """Write a finished run, without weights, to one compressed file, and return the path of that file.

    Args:
        run: The run.
        folder: Where to write it; an existing export of the same run is replaced.

    Raises:
        ValueError: If something is not a regular file, is far too large, or lies outside the run's folder.
    """
    files = {name: read_bytes(run.folder / name, MOST_BYTES) for name in FILES if (run.folder / name).exists()}
    records, sources = run.evaluations(), dict[str, Path]()
    for record in records:
        source = run.predictions_file(record)
        # A record may spell the path of a file differently, even as a path that leaves the folder.
        record["predictions"] = name = f"predictions/{source.name}"
        if sources.setdefault(name, source) != source:
            raise InputError(
                f"{run.evaluation_file} refers to two different files named {source.name}: evaluate the run again"
            )
        files[name] = read_bytes(source, MOST_BYTES)
    files[run.evaluation_file.name] = (json.dumps(records, indent=1) + "\n").encode()
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"{run.folder.name}{SUFFIX}"
    write_atomically(archive, pack_files(files))
    return archive
