"""Predictions: one record an example, exactly once."""

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
"""Bytes that compressed predictions may expand to, however small the file: half a million; see `files.reading`."""
MOST_BYTES = 50_000_000
"""Bytes of a file of predictions, compressed or not: two million, which take half a gigabyte while they are read."""
ROWS_AT_ONCE = 10_000
LARGEST = 2**53  # place or class
LEAST_COMMON = 0.5  # of the examples of each: with fewer, a comparison would be about other data


@dataclass(frozen=True)
class Predictions:
    """What a model made of examples, in the order of their ids.

    Attributes:
        ids: Places in the data set; those of examples that could not be read are missing.
        labels: Right answers.
        predictions: Answers.
        losses: Cross-entropies.
    """

    ids: list[int]
    labels: list[int]
    predictions: list[int]
    losses: list[float]

    def __post_init__(self) -> None:
        if any(first >= second for first, second in pairwise([-1, *self.ids])):
            raise InputError(
                f"predictions must be one an example, in the order of ids, but {len(self.ids)} ids are not: "
                f"{len(set(self.ids))} of them are different"
            )

    @property
    def correct(self) -> NDArray[np.float64]:
        """1 where the answer is right, 0 where it is wrong."""
        return (np.asarray(self.labels) == np.asarray(self.predictions)).astype(np.float64)

    def write(self, path: Path) -> None:
        """Write a CSV file, whole or not at all."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        losses = [f"{loss:.6g}" for loss in self.losses]
        writer.writerows(zip(self.ids, self.labels, self.predictions, losses, strict=True))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.getvalue())

    @classmethod
    def read(cls, path: Path) -> Predictions:
        """Read what `write` wrote, compressed (`.csv.gz`) or not.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If it is something else.
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
            raise InputError(f"{hint}{path} does not hold predictions ({', '.join(COLUMNS)}): evaluate again") from None


def read_predictions(run: Run, record: dict[str, Any]) -> Predictions:
    """Return the predictions of an evaluation of a run.

    Args:
        run: The run.
        record: What `Run.evaluations` has of it.

    Raises:
        FileNotFoundError: If the file is gone.
        ValueError: If it is damaged, or has another number of examples than the record.
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
    """Return predictions of several models for the examples that all of them have, in the same order.

    Files that could not be read differ from run to run; where all have the same examples, nothing is changed.

    Raises:
        ValueError: If an example has two labels, or fewer than half of the examples of one are common to all.

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
                f"test example {number} has the labels {labels}: these runs were tested on different data; evaluate "
                "them again on the same"
            )
    most = max(map(len, tables))
    if len(ids) < LEAST_COMMON * most:
        raise InputError(
            f"only {len(ids)} of {most} test examples are common to these runs: evaluate them again on the same ones"
        )
    return [Predictions(*map(list, zip(*(table[number] for number in ids), strict=True))) for table in tables]
