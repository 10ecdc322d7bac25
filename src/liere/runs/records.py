"""What a run's `result.json`, `evaluation.json` and `metrics.csv` hold, checked before it is believed."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from liere.config_fields import Count, CountOrZero, Real, Switch
from liere.files.reading import JSON_BYTES, DamagedError, read_bytes, read_json, shorten, warn_once
from liere.runs.conditions import Condition

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError  # isort: skip

__all__ = ["COLUMNS", "read_evaluations", "read_metrics", "read_result"]

COLUMNS = ("step", "examples", "seconds", "learning_rate", "train_loss", "val_loss", "val_accuracy")
WHOLE_COLUMNS = ("step", "examples")
MOST_DIGITS = 15
LARGEST = 10**MOST_DIGITS
"""Numbers of steps, examples and parameters are below that."""
RESULT_BYTES = 100_000  # real ones have two thousand; pydantic keeps a thousand bytes for each field that is wrong
MOST_EVALUATIONS = 10_000
METRICS_BYTES = 40_000_000
"""Bytes of a log: a line has some 60 of them and takes ten times as much memory."""

Number = Annotated[Count, Field(lt=LARGEST)]
NumberOrZero = Annotated[CountOrZero, Field(lt=LARGEST)]
Accuracy = Annotated[Real, Field(ge=0, le=1)]
Seconds = Annotated[Real, Field(ge=0, lt=LARGEST, allow_inf_nan=False)]
Word = Annotated[str, Field(strict=True)]


class _Record(BaseModel):
    """Part of a file; what it has besides is kept as it is."""

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
    accuracy: _Accuracy
    predictions: Word


_EVALUATIONS = TypeAdapter(list[Annotated[_Evaluation, AfterValidator(_is_known)]])


def read_result(path: Path) -> dict[str, Any]:
    """Return what came out of a run.

    Raises:
        FileNotFoundError: If there is no such file.
        DamagedError: If it holds something else.
    """
    content: dict[str, Any] = _read_checked(path, _Result.model_validate, RESULT_BYTES)
    return content


def read_evaluations(path: Path) -> list[dict[str, Any]]:
    """Return what evaluations of a run found.

    Raises:
        FileNotFoundError: If there is no such file.
        DamagedError: If it holds something else.
    """
    content: list[dict[str, Any]] = _read_checked(path, _EVALUATIONS.validate_python, JSON_BYTES)
    found = set()
    for record in content:
        key = (record["weights"], Condition.of(record))
        if key in found:
            raise DamagedError(f"{path} is damaged ({key[1].describe()} is there twice)")
        found.add(key)
    return content


def read_metrics(path: Path) -> list[dict[str, str]]:
    """Return the whole lines of a log; one that is being written is left out, and so are damaged ones, with a warning.

    A log is never a reason to stop: where it is something else altogether, that is said, and there are no lines.
    """
    try:
        content = read_bytes(path, METRICS_BYTES)
    except FileNotFoundError:
        return []
    except DamagedError as error:
        warn_once(f"{error}; it is not used")
        return []
    header, *lines = content[: content.rfind(b"\n") + 1].split(b"\n")
    if not content or not lines:
        return []
    if header.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r").decode("ascii", "replace") != ",".join(COLUMNS):
        warn_once(f"{path} does not begin with {','.join(COLUMNS)}: it is not used")
        return []
    rows, damaged = [], []
    for number, line in enumerate(lines, start=2):
        if line.strip():
            cells = line.rstrip(b"\r").decode("ascii", "replace").split(",")
            if _is_row(cells):
                rows.append(dict(zip(COLUMNS, cells, strict=True)))
            else:
                damaged.append(number)
    if damaged:
        others = f" and {len(damaged) - 1} more" if len(damaged) > 1 else ""
        warn_once(f"{path}, line {damaged[0]}{others}, is damaged: skipped")
    return rows


def _read_checked(path: Path, check: Callable[[Any], object], most: int) -> Any:
    """Return what a JSON file of so many bytes at most holds, as it stands there, once a check of pydantic passed."""
    content = read_json(path, most)
    if isinstance(content, list) and len(content) > MOST_EVALUATIONS:  # all errors of a list are kept
        raise DamagedError(f"{path} is damaged (it has {len(content):,} records, more than {MOST_EVALUATIONS:,})")
    try:
        check(content)
    except ValidationError as error:
        raise DamagedError(f"{path} is damaged ({_explain(error)})") from None
    return content


def _is_row(cells: list[str]) -> bool:
    """Return whether cells are those of a line of a log: numbers, of which those that a line is about must be there."""
    if len(cells) != len(COLUMNS):
        return False
    row = dict(zip(COLUMNS, cells, strict=True))
    if not all(row[name].isdecimal() and len(row[name]) <= MOST_DIGITS for name in WHOLE_COLUMNS):
        return False
    try:
        numbers = {name: float(cell) for name, cell in row.items() if cell}
    except ValueError:
        return False
    accuracy, seconds = numbers.get("val_accuracy"), numbers.get("seconds", math.nan)
    is_whole = accuracy is None or (0 <= accuracy <= 1 and "val_loss" in numbers)
    return is_whole and math.isfinite(seconds)


def _explain(error: ValidationError) -> str:
    """Say in one line what is wrong with the first wrong field."""
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
