"""Predictions: exactly one record per example."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from liere.errors import InputError
from liere.files.reading import DamagedError, read_bytes, read_gzip
from liere.files.writing import write_atomically

if TYPE_CHECKING:
    from liere.runs.run import Run

__all__ = ["Predictions", "common_examples", "read_predictions"]

COLUMNS = ("id", "label", "prediction", "loss")
KINDS: tuple[type[int] | type[float], ...] = (int, int, int, float)
ALLOWANCE = 16 * 2**20
"""Bytes that any compressed file may expand to, enough for half a million predictions; see `files.reading`."""
MOST_BYTES = 50_000_000
"""Maximum uncompressed size of a file, enough for two million predictions, which take half a gigabyte to read."""
ROWS_AT_ONCE = 10_000
LARGEST = 2**53  # of an index or class
LEAST_COMMON = 0.5  # of the examples of each run; with fewer, a comparison would be about different data


@dataclass(frozen=True)
class Predictions:
    """The predictions of a model, in the order of example ids.

    Attributes:
        ids: Indices in the data set, without those of unreadable examples.
        labels: Correct classes.
        predictions: Predicted classes.
        losses: Cross-entropy losses.
    """

    ids: list[int]
    labels: list[int]
    predictions: list[int]
    losses: list[float]

    def __post_init__(self) -> None:
        if any(first >= second for first, second in pairwise([-1, *self.ids])):
            raise InputError(
                f"predictions must have one record per example, in the order of ids, but {len(self.ids)} ids do not: "
                f"{len(set(self.ids))} of them are different"
            )

    @property
    def correct(self) -> NDArray[np.float64]:
        """1 for correct answers, 0 for wrong ones."""
        return (np.asarray(self.labels) == np.asarray(self.predictions)).astype(np.float64)

    def write(self, path: Path) -> None:
        """Write a CSV file atomically."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        losses = [f"{loss:.6g}" for loss in self.losses]
        writer.writerows(zip(self.ids, self.labels, self.predictions, losses, strict=True))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.getvalue())

    @classmethod
    def read(cls, path: Path) -> Predictions:
        """Return the predictions in a CSV file by `write`, compressed (`.csv.gz`) or not.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If it contains anything else.
        """
        try:
            is_packed = path.suffix == ".gz"
            content = read_gzip(path, ALLOWANCE, MOST_BYTES) if is_packed else read_bytes(path, MOST_BYTES)
            header, *rows = content.decode("ascii").splitlines()
            del content
            if header != ",".join(COLUMNS):
                raise InputError("another header")
            columns: tuple[list[Any], ...] = ([], [], [], [])
            for start in range(0, len(rows), ROWS_AT_ONCE):
                cells = [row.split(",") for row in rows[start : start + ROWS_AT_ONCE]]
                for column, kind, part in zip(columns, KINDS, zip(*cells, strict=True), strict=True):
                    column.extend(map(kind, part))
            if any(not 0 <= number < LARGEST for column in columns[:3] for number in column):
                raise InputError("no places or classes")
            if not all(map(math.isfinite, columns[3])):
                raise InputError("no losses")
            return cls(*columns)
        except ValueError as error:
            hint = f"{error}; " if isinstance(error, DamagedError) else ""
            raise InputError(
                f"{hint}{path} does not contain predictions ({', '.join(COLUMNS)}): evaluate again"
            ) from None


def read_predictions(run: Run, record: dict[str, Any]) -> Predictions:
    """Return the predictions of an evaluation of a run.

    Args:
        run: The run.
        record: Record of the evaluation in `Run.evaluations`.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If it is damaged, or its number of examples differs from the record.
    """
    path = run.predictions_file(record)
    found = Predictions.read(path)
    if len(found.ids) != record["examples"]:
        raise InputError(
            f"{path} has {len(found.ids):,} predictions, but {run.evaluation_file} says {record['examples']:,}: "
            "evaluate again"
        )
    return found


def common_examples(parts: Sequence[Predictions]) -> list[Predictions]:
    """Return the predictions of several models for their common examples, in the same order.

    Unreadable files may differ between runs; if all have the same examples, the input is returned unchanged.

    Raises:
        ValueError: If an example has two labels, or less than half of the examples of a model are common to all.

    Example:
        >>> one = Predictions([0, 1, 2], [5, 6, 7], [5, 6, 0], [0.1, 0.2, 3.0])
        >>> other = Predictions([0, 2, 3], [5, 7, 8], [5, 7, 8], [0.1, 0.1, 0.1])
        >>> [part.ids for part in common_examples([one, other])]
        [[0, 2], [0, 2]]
    """
    if all(part.ids == parts[0].ids and part.labels == parts[0].labels for part in parts):
        return list(parts)
    tables = [{row[0]: row for row in zip(*vars(part).values(), strict=True)} for part in parts]
    ids = sorted(set.intersection(*(set(table) for table in tables)))
    for number in ids:
        labels = sorted({table[number][1] for table in tables})
        if len(labels) > 1:
            raise InputError(
                f"test example {number} has the labels {labels}, so these runs were tested on different data: evaluate "
                "them again on the same data"
            )
    most = max(map(len, tables))
    if len(ids) < LEAST_COMMON * most:
        raise InputError(
            f"only {len(ids)} of {most} test examples are common to these runs: evaluate them again on the same ones"
        )
    return [Predictions(*map(list, zip(*(table[number] for number in ids), strict=True))) for table in tables]
