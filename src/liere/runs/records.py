"""Validated contents of a run's `result.json`, `evaluation.json` and `metrics.csv`."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from liere.config_fields import Count, CountOrZero, Real, Switch
from liere.files.reading import JSON_BYTES, DamagedError, read_bytes, read_json, shorten, warn_once
from liere.runs.conditions import Condition

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError  # isort: skip

__all__ = ["COLUMNS", "is_log", "merge_evaluations", "read_curve", "read_evaluations", "read_metrics", "read_result"]

COLUMNS = ("step", "examples", "seconds", "learning_rate", "train_loss", "val_loss", "val_accuracy")
WHOLE_COLUMNS = ("step", "examples")
MOST_DIGITS = 15
LARGEST = 10**MOST_DIGITS
"""Upper limit for numbers of steps, examples and parameters."""
RESULT_BYTES = 100_000  # real files have two thousand; pydantic keeps a thousand bytes per invalid field
MOST_EVALUATIONS = 10_000
METRICS_BYTES = 40_000_000
"""Maximum size of a log: a line has about 60 bytes."""
METRICS_LINES = METRICS_BYTES // 40  # of real lines, fewer fit into the maximum size
MOST_POINTS = 20_000
"""Maximum number of validations in a learning curve, which is drawn and stored in every report."""

Number = Annotated[Count, Field(lt=LARGEST)]
NumberOrZero = Annotated[CountOrZero, Field(lt=LARGEST)]
Accuracy = Annotated[Real, Field(ge=0, le=1)]
Seconds = Annotated[Real, Field(ge=0, lt=LARGEST, allow_inf_nan=False)]
Word = Annotated[str, Field(strict=True)]


class _Record(BaseModel):
    """A record in a file; additional fields are kept unchanged."""

    model_config = ConfigDict(extra="allow", frozen=True)


class _Best(_Record):
    step: Number
    accuracy: Accuracy
    loss: Real  # may be NaN


class _Machine(_Record):
    __pydantic_extra__: dict[str, Word | Real | Switch | None]
    threads: Number = 1


class _Result(_Record):
    step: Number
    examples: Number
    seconds: Seconds
    parameters: NumberOrZero
    encoding_parameters: NumberOrZero
    best: _Best | None
    fingerprint: Word
    date: Word
    machine: _Machine
    versions: dict[Word, Word | None]


class _Accuracy(_Record):
    value: Accuracy


def _is_known(record: _Evaluation) -> _Evaluation:
    Condition.of(record.model_dump())
    return record


class _Evaluation(_Record):
    size: Annotated[Number, Field(le=100_000)]
    policy: Word = ""
    shuffle: Word = ""
    attention_scale: Word = ""
    placement: Word = ""
    weights: Literal["final", "best"]
    examples: Number
    asked: Number | None = None
    skipped: NumberOrZero = 0
    accuracy: _Accuracy
    predictions: Word


_EVALUATIONS = TypeAdapter(list[Annotated[_Evaluation, AfterValidator(_is_known)]])


def read_result(path: Path) -> dict[str, Any]:
    """Return the result of a run.

    Raises:
        FileNotFoundError: If there is no such file.
        DamagedError: If it contains anything else.
    """
    content: dict[str, Any] = _read_checked(path, _Result.model_validate, RESULT_BYTES)
    return content


def read_evaluations(path: Path) -> list[dict[str, Any]]:
    """Return the evaluations of a run.

    Raises:
        FileNotFoundError: If there is no such file.
        DamagedError: If it contains anything else.
    """
    content: list[dict[str, Any]] = _read_checked(path, _EVALUATIONS.validate_python, JSON_BYTES)
    found = set()
    for record in content:
        key = (record["weights"], Condition.of(record))
        if key in found:
            raise DamagedError(f"{path} is damaged ({key[1].describe()} is repeated)")
        found.add(key)
    return content


def merge_evaluations(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the evaluations of both lists in order; a new one replaces an old one of the same condition."""
    found = {(record["weights"], Condition.of(record)): record for record in [*old, *new]}
    return [found[key] for key in sorted(found)]


def read_metrics(path: Path) -> Iterator[dict[str, str]]:
    """Yield the complete lines of a log, one by one because many of them need much memory.

    Damaged lines are skipped with a warning. A damaged log is never an error: if it is not a log at all, or much larger
    than real ones, a warning is printed and there are no lines.
    """
    damaged, first = 0, 0
    for number, line in enumerate(_complete_lines(path) or (), start=2):
        if line.strip():
            row = _row(line.rstrip(b"\r\n").decode("ascii", "replace").split(","))
            if row is not None:
                yield row
            else:
                damaged, first = damaged + 1, first or number
    if damaged:
        others = f" and {damaged - 1} more" if damaged > 1 else ""
        warn_once(f"{path}, line {first}{others}, is damaged: skipped")


def is_log(path: Path) -> bool:
    """Return whether `read_metrics` reads a file, which need not exist yet; if not, a warning is printed."""
    return _complete_lines(path) is not None


def read_curve(path: Path) -> list[dict[str, float]]:
    """Return the validations in a log: examples, accuracy and loss; very many are thinned with a warning."""
    points = [
        {"examples": int(row["examples"]), "accuracy": float(row["val_accuracy"]), "loss": float(row["val_loss"])}
        for row in read_metrics(path)
        if row["val_accuracy"]
    ]
    every = math.ceil(len(points) / MOST_POINTS)
    if every > 1:
        warn_once(f"{path} has {len(points):,} validations, more than {MOST_POINTS:,}: one in {every} is used")
        return points[::-every][::-1]  # with the last one
    return points


def _read_checked(path: Path, check: Callable[[Any], object], most: int) -> Any:
    """Return the unchanged content of a JSON file of at most `most` bytes, after checking it with pydantic."""
    content = read_json(path, most)
    if isinstance(content, list) and len(content) > MOST_EVALUATIONS:  # pydantic would keep an error for each entry
        raise DamagedError(f"{path} is damaged (it has {len(content):,} records, more than {MOST_EVALUATIONS:,})")
    try:
        check(content)
    except ValidationError as error:
        raise DamagedError(f"{path} is damaged ({_explain(error)})") from None
    return content


def _complete_lines(path: Path) -> io.BytesIO | None:
    """Return the complete lines of a log after its header; None, after a warning, if the file cannot be used."""
    try:
        content = read_bytes(path, METRICS_BYTES)
    except FileNotFoundError:
        return io.BytesIO()
    except DamagedError as error:
        warn_once(f"{error}; it is not used")
        return None
    complete = content[: content.rfind(b"\n") + 1]
    if not complete:
        return io.BytesIO()
    lines = io.BytesIO(complete)
    header = lines.readline().rstrip(b"\r\n").removeprefix(b"\xef\xbb\xbf")
    if header.decode("ascii", "replace") != ",".join(COLUMNS):
        warn_once(f"{path} does not start with {','.join(COLUMNS)}: it is not used")
        return None
    if (count := complete.count(b"\n")) > METRICS_LINES:
        warn_once(f"{path} has {count:,} lines, but at most {METRICS_LINES:,} are read; it is not used")
        return None
    return lines


def _row(cells: list[str]) -> dict[str, str] | None:
    """Return a valid line of a log by column: numbers, with all required columns present. None if it is not valid."""
    if len(cells) != len(COLUMNS):
        return None
    row = dict(zip(COLUMNS, cells, strict=True))
    if not all(row[name].isdecimal() and len(row[name]) <= MOST_DIGITS for name in WHOLE_COLUMNS):
        return None
    try:
        numbers = {name: float(cell) for name, cell in row.items() if cell}
    except ValueError:
        return None
    accuracy, seconds = numbers.get("val_accuracy"), numbers.get("seconds", math.nan)
    is_whole = accuracy is None or (0 <= accuracy <= 1 and "val_loss" in numbers)
    return row if is_whole and math.isfinite(seconds) else None


def _explain(error: ValidationError) -> str:
    """Return a one-line message about the first invalid field."""
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        return f"it has no {place}"
    what = first["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    return shorten(
        f"{place or 'its content'} {what}" + ("" if first["type"] == "value_error" else _got(first["input"]))
    )


def _got(value: object) -> str:
    return f", got {shorten(repr(value))}" if isinstance(value, str | int | float | None) else ""
