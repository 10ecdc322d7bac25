"""Argument types, argument checks and output of the toolkit functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from liere.encodings import PositionEncoding
from liere.errors import InputTypeError, check_least, whole_number
from liere.files.reading import shorten
from liere.runs.run import Run
from liere.terminal.messages import tell, warn

__all__ = ["Encoding", "Place", "call_text", "count_of", "folder_of", "path_of", "several", "teller", "warner"]

Encoding = str | type[PositionEncoding]
Place = str | Path


def call_text(function: str, *arguments: Any, **options: Any) -> str:
    """Return the text of a call, for reports; options that are None are omitted.

    Example:
        >>> call_text("compare", "recipe.yaml", seeds=[0, 1], sizes=None)
        "liere.toolkit.compare('recipe.yaml', seeds=[0, 1])"
    """
    given = [*map(repr, arguments), *(f"{name}={value!r}" for name, value in options.items() if value is not None)]
    return f"liere.toolkit.{function}({', '.join(given)})"


def several(name: str, value: Any, *, one: tuple[type, ...] = ()) -> list[Any]:
    """Return values as a list; a single value of a type in `one` becomes a list of one.

    Raises:
        TypeError: If the value is neither.

    Example:
        >>> several("sizes", 108, one=(int,)), several("seeds", range(2))
        ([108], [0, 1])
        >>> several("seeds", 3)
        Traceback (most recent call last):
            ...
        liere.errors.InputTypeError: seeds must be a list, got 3: write [3]
    """
    if isinstance(value, one):
        return [value]
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InputTypeError(f"{name} must be a list, got {value!r}: write [{value!r}]")
    return list(value)


def count_of(name: str, value: Any) -> int | None:
    """Return a positive integer, or None if none is given.

    Raises:
        TypeError: If it is no integer.
        ValueError: If it is not positive.

    Example:
        >>> count_of("examples", None), count_of("examples", 100)
        (None, 100)
        >>> count_of("examples", 0)
        Traceback (most recent call last):
            ...
        liere.errors.InputError: examples must be at least 1, got 0
    """
    if value is None:
        return None
    number = whole_number(name, value)
    check_least(name, number, 1)
    return number


def path_of(name: str, place: Any) -> Path:
    """Return a place as a path.

    Raises:
        TypeError: If it is no path.

    Example:
        >>> path_of("out", 3)
        Traceback (most recent call last):
            ...
        liere.errors.InputTypeError: out must be a path, got 3
    """
    if not isinstance(place, str | Path):
        raise InputTypeError(f"{name} must be a path, got {shorten(repr(place))}")
    return Path(place)


def folder_of(run: Run | Place) -> Path:
    """Return the folder of a run, given the run or its folder."""
    return run.folder if isinstance(run, Run) else path_of("run", run)


def teller(progress: bool) -> Callable[[str], None]:
    """Return a function that prints progress lines, or one that ignores them."""
    return tell if progress else _nothing


def warner(progress: bool) -> Callable[[str], None]:
    """Return a function that prints lines to standard error; without `progress`, it prints warnings only."""
    return warn if progress else _warn_only


def _nothing(line: str) -> None:
    pass


def _warn_only(line: str) -> None:
    if line.startswith("warning: "):
        warn(line)
