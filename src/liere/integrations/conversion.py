"""What conversions of models of other libraries have in common: their arguments."""

from __future__ import annotations

import copy
from typing import Any

from torch import nn

from liere.encodings import RotaryEncoding, TransformerShape, create_encoding
from liere.encodings.liere import LieRE
from liere.errors import InputError, suggest

__all__ = ["check_start", "describe", "make_encoding"]

STARTS = ("identity", "rope")


def check_start(start: str) -> None:
    """Raise `ValueError` unless a conversion can start that way."""
    if start not in STARTS:
        raise InputError(f"unknown start {start!r}: {suggest(str(start), STARTS)}")


def make_encoding(encoding: str | RotaryEncoding, shape: TransformerShape) -> LieRE:
    """Return the encoding with a name, or a copy of an encoding, for a model of that shape.

    Raises:
        ValueError: If it has no learned rotations, or does not fit the model.
    """
    made = create_encoding(encoding, shape) if isinstance(encoding, str) else copy.deepcopy(encoding)
    if not isinstance(made, LieRE):
        why = "has no generators to learn" if isinstance(made, RotaryEncoding) else "does not rotate queries and keys"
        raise InputError(
            f"encoding {encoding if isinstance(encoding, str) else type(encoding).__name__!r} {why}: use 'liere8', "
            "'liere' (dense) or 'rope_mixed'"
        )
    made.check_fit(shape)
    return made


def describe(model: Any) -> str:
    """Return what an error message calls a model.

    Example:
        >>> describe(nn.Linear(1, 1)), describe(3)
        ('a model of type Linear', 'int')
    """
    return f"a model of type {type(model).__name__}" if isinstance(model, nn.Module) else type(model).__name__
