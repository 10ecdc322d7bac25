"""Runs without their weights, to be kept with the project: what they were, what they predicted, how they learned."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

from liere.files import write_atomically
from liere.reading import open_regular
from liere.training.runs import Run

__all__ = ["export_run"]

FILES = ("config.yaml", "result.json", "metrics.csv")


def export_run(run: Run, folder: Path) -> None:
    """Copy a finished run to a folder, without weights and with compressed predictions.

    Args:
        run: The run.
        folder: The new folder; what is there of the same run is replaced.
    """
    if folder.resolve() == run.folder.resolve():
        return
    (folder / "predictions").mkdir(parents=True, exist_ok=True)
    for name in FILES:
        if (run.folder / name).exists():
            shutil.copyfile(run.folder / name, folder / name)
    records = run.evaluations()
    for record in records:
        source = run.predictions_file(record)
        with open_regular(source) as file:
            content = file.read()
        if source.suffix != ".gz":
            content = gzip.compress(content, mtime=0)
            record["predictions"] += ".gz"
        write_atomically(folder / record["predictions"], content)
    write_atomically(folder / run.evaluation_file.name, json.dumps(records, indent=1) + "\n")
