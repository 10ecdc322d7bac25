"""Argument types, argument checks and output of the toolkit functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from liere.encodings import PositionEncoding
from liere.errors import InputTypeError
from liere.runs.run import Run
from liere.terminal.messages import tell, warn

__all__ = ["Encoding", "Place", "call_text", "folder_of", "several", "teller", "warner"]

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


def folder_of(run: Run | Place) -> Path:
    """Return the folder of a run, given the run or its folder."""
    return run.folder if isinstance(run, Run) else Path(run)


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
