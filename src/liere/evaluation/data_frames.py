"""Rows for a notebook: plain dicts, or a `DataFrame` if pandas is installed."""

from __future__ import annotations

import importlib.util
from typing import Any

__all__ = ["as_frame"]


def as_frame(rows: list[dict[str, Any]], pandas: bool | None = None) -> Any:
    """Return rows unchanged or as a `DataFrame`.

    Args:
        rows: Dicts with the same keys.
        pandas: True for a `DataFrame`, False for the rows; None for a `DataFrame` if pandas is installed.

    Raises:
        ImportError: If `pandas` is True but pandas is not installed.

    Example:
        >>> as_frame([{"size": 108, "mean": 0.5}], pandas=False)
        [{'size': 108, 'mean': 0.5}]
    """
    if pandas is False or (pandas is None and importlib.util.find_spec("pandas") is None):
        return rows
    from pandas import DataFrame

    return DataFrame(rows)
