"""Matplotlib figures in the style of the project, drawn without a display."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from liere.errors import InputError
from liere.files.writing import write_atomically
from liere.optional.extras import require

__all__ = [
    "CELL",
    "GRID",
    "INK",
    "MUTED",
    "Drawing",
    "canvas",
    "check_picture",
    "figure_png",
    "require_matplotlib",
    "sheet",
]

INK, MUTED, GRID = "#1f2430", "#6b7280", "#e5e7eb"
CELL = (4.6, 3.4)  # inches; at 72 units per inch about the width of a phone, which keeps text legible there
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".svg", ".pdf", ".eps")
STYLE: Any = {
    "font.size": 10,
    "font.family": "DejaVu Sans",
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlesize": 11,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
}


class Drawing(NamedTuple):
    """A figure in two formats.

    Attributes:
        png: The figure as a PNG file, on white.
        svg: The figure as an `<svg>` element for an HTML page.
        alt: Text alternative.
    """

    png: bytes
    svg: str
    alt: str


def check_picture(path: Path, name: str) -> None:
    """Raise `ValueError` if a file cannot be a picture.

    Args:
        path: The file; without a suffix it will be a PNG file.
        name: Name of the argument, for the error message.
    """
    if path.name in ("", "..") or path.is_dir():
        raise InputError(f"{name} {path} is a folder: name a file in it, for example {path / 'picture.png'}")
    if path.suffix and path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{name} {path} is not a picture: use one of {', '.join(SUFFIXES)}")


def require_matplotlib() -> None:
    """Raise `ImportError` with the installation command if matplotlib, or a package that it needs, is missing."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError("pictures need matplotlib: pip install 'liere[plot]'")
    require("numpy", "PIL", extra="plot")


@contextmanager
def sheet(rows: int, columns: int, *, cell: tuple[float, float], **options: Any) -> Iterator[Any]:
    """Yield a figure and its grid of axes, in the style shared by all pictures.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(cell[0] * columns, cell[1] * rows), layout="constrained")
        yield figure, figure.subplots(rows, columns, squeeze=False, **options)


@contextmanager
def canvas(path: Path, rows: int, columns: int, *, cell: tuple[float, float], **options: Any) -> Iterator[Any]:
    """Yield a figure and its grid of axes, then save the figure to `path`.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    with sheet(rows, columns, cell=cell, **options) as (figure, axes):
        yield figure, axes
        path.parent.mkdir(parents=True, exist_ok=True)
        picture = io.BytesIO()
        figure.savefig(picture, format=path.suffix.removeprefix(".") or "png", dpi=150, facecolor="white")
        write_atomically(path, picture.getbuffer())


def figure_png(figure: Any) -> bytes:
    """Return a figure as a PNG file, on white."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, facecolor="white")
    return buffer.getvalue()
