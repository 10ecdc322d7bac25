"""Runs without their weights, to be kept with the project: what they were, what they predicted, how they learned."""

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
MOST_BYTES = 50_000_000  # of a file; the readers of these files take less


def export_run(run: Run, folder: Path) -> Path:
    """Write a finished run to one compressed file, without weights, and return that file.

    Args:
        run: The run.
        folder: Where to write it; what is there of the same run is replaced.

    Raises:
        ValueError: If something is not a file, is much larger than such files are, or leads out of the run.
    """
    files = {name: read_bytes(run.folder / name, MOST_BYTES) for name in FILES if (run.folder / name).exists()}
    records, sources = run.evaluations(), dict[str, Path]()
    for record in records:
        source = run.predictions_file(record)
        # The record may write the same file in other ways, some of which lead out of the folder.
        record["predictions"] = name = f"predictions/{source.name}"
        if sources.setdefault(name, source) != source:
            raise InputError(f"{run.evaluation_file} names two files {source.name}: evaluate again")
        files[name] = read_bytes(source, MOST_BYTES)
    files[run.evaluation_file.name] = (json.dumps(records, indent=1) + "\n").encode()
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"{run.folder.name}{SUFFIX}"
    write_atomically(archive, pack_files(files))
    return archive
