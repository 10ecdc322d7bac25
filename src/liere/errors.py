"""Helpers for errors that name the argument, the value and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["suggest"]


def suggest(name: str, known: Iterable[str]) -> str:
    """Return "did you mean ...?" for the known name nearest to `name`, or the list of known names.

    Example:
        >>> suggest("rope-mixed", ["absolute", "rope_mixed"])
        "did you mean 'rope_mixed'?"
        >>> suggest("xyz", ["absolute", "rope_mixed"])
        "choose from 'absolute', 'rope_mixed'"
    """
    known = list(known)
    near = difflib.get_close_matches(name.lower(), known, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return "choose from " + ", ".join(map(repr, known))
