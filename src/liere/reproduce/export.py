"""Runs without their weights, to be kept with the project: what they were, what they predicted, how they learned."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from liere.files.reading import read_bytes
from liere.files.writing import write_atomically
from liere.runs.run import Run

__all__ = ["export_run"]

FILES = ("config.yaml", "result.json", "metrics.csv")
MOST_BYTES = 100_000_000  # of a file; the readers of these files take less


def export_run(run: Run, folder: Path) -> None:
    """Copy a finished run to a folder, without weights and with compressed predictions.

    Args:
        run: The run.
        folder: The new folder; what is there of the same run is replaced.

    Raises:
        ValueError: If something is not a file, is much larger than such files are, or leads out of the run.
    """
    if folder.resolve() == run.folder.resolve():
        return
    (folder / "predictions").mkdir(parents=True, exist_ok=True)
    for name in FILES:
        if (run.folder / name).exists():
            write_atomically(folder / name, read_bytes(run.folder / name, MOST_BYTES))
    records = run.evaluations()
    for record in records:
        source = run.predictions_file(record)
        content = read_bytes(source, MOST_BYTES)
        # The record may write the same file in other ways, some of which lead out of the new folder.
        record["predictions"] = source.relative_to(run.folder.resolve()).as_posix()
        if source.suffix != ".gz":
            content = gzip.compress(content, mtime=0)
            record["predictions"] += ".gz"
        (folder / record["predictions"]).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / record["predictions"], content)
    write_atomically(folder / run.evaluation_file.name, json.dumps(records, indent=1) + "\n")
