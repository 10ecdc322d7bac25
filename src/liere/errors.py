"""Helpers for errors that name the argument, the value and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["nearest", "suggest"]


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that `name` may be a misspelling of, if there is one."""
    return next(iter(difflib.get_close_matches(name.lower(), list(known), n=1)), None)


def suggest(name: str, known: Iterable[str]) -> str:
    """Return "did you mean ...?" for the known name nearest to `name`, or the list of known names.

    Example:
        >>> suggest("rope-mixed", ["absolute", "rope_mixed"])
        "did you mean 'rope_mixed'?"
        >>> suggest("xyz", ["absolute", "rope_mixed"])
        "choose from 'absolute', 'rope_mixed'"
    """
    known = list(known)
    near = nearest(name, known)
    return f"did you mean {near!r}?" if near else "choose from " + ", ".join(map(repr, known))
