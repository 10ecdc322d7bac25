"""How functions of the toolkit are called and what they say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from liere.encodings import PositionEncoding
from liere.runs.run import Run
from liere.terminal.messages import tell, warn

__all__ = ["Encoding", "Place", "call_text", "folder_of", "teller", "warner"]

Encoding = str | type[PositionEncoding]
Place = str | Path


def call_text(function: str, *arguments: Any, **options: Any) -> str:
    """Return a call as a report shows it; options that are None are left out.

    Example:
        >>> call_text("compare", "recipe.yaml", seeds=[0, 1], sizes=None)
        "liere.toolkit.compare('recipe.yaml', seeds=[0, 1])"
    """
    given = [*map(repr, arguments), *(f"{name}={value!r}" for name, value in options.items() if value is not None)]
    return f"liere.toolkit.{function}({', '.join(given)})"


def folder_of(run: Run | Place) -> Path:
    """Return the folder of a run that is given as such or by its folder."""
    return run.folder if isinstance(run, Run) else Path(run)


def teller(progress: bool) -> Callable[[str], None]:
    """Return what receives lines about the work."""
    return tell if progress else _nothing


def warner(progress: bool) -> Callable[[str], None]:
    """Return what receives lines about progress, of which warnings are shown in any case."""
    return warn if progress else _warn_only


def _nothing(line: str) -> None:
    pass


def _warn_only(line: str) -> None:
    if line.startswith("warning: "):
        warn(line)
