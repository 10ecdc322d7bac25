"""What conversions of models of other libraries have in common: their arguments, and wider blocks."""

from __future__ import annotations

import copy
from typing import Any, TypeVar, overload

from torch import nn

from liere.encodings import RotaryEncoding, TransformerShape, create_encoding
from liere.encodings.liere import LieRE
from liere.errors import InputError, InputTypeError, suggest
from liere.integrations.mixing import Mixed
from liere.integrations.planes import widen_encoding

__all__ = ["Converted", "check_not_converted", "check_start", "describe", "make_encoding", "widen"]

STARTS = ("identity", "rope")
Model = TypeVar("Model", bound=nn.Module)


class Converted(Mixed):
    """Base of what is mixed into models that are converted."""

    def replace_encoding(self, encoding: LieRE) -> None:
        """Rotate by another encoding of the same shape from now on."""
        raise NotImplementedError


def check_not_converted(model: Any) -> None:
    """Raise `TypeError` if a model is converted already."""
    if isinstance(model, Converted):
        raise InputTypeError("model is converted already: convert the original again, or use widen for larger blocks")


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


@overload
def widen(model_or_encoding: LieRE, block: int) -> LieRE: ...
@overload
def widen(model_or_encoding: Model, block: int) -> Model: ...
def widen(model_or_encoding: Any, block: int) -> Any:
    """Return a copy of a converted model, or of an encoding, with larger blocks and the same outputs.

    Each new block holds neighboring old blocks on its diagonal, and zeros that training may fill.

    Args:
        model_or_encoding: What `convert` returned, or a `LieRE` encoding.
        block: Size of the new blocks: a multiple of the old size that divides the width of a head.

    Raises:
        TypeError: If it is neither a converted model nor a LieRE encoding.
        ValueError: If the old blocks do not fit into the new ones.

    Example:
        >>> planes = LieRE(2, 64, num_heads=6, depth=2, block_size=2)
        >>> widen(planes, 8).generators.shape
        torch.Size([2, 2, 6, 8, 28])
    """
    if isinstance(model_or_encoding, Converted):
        model: Any = copy.deepcopy(model_or_encoding)
        model.replace_encoding(widen_encoding(model.encoding, block))
        return model
    if isinstance(model_or_encoding, nn.Module) and not isinstance(model_or_encoding, RotaryEncoding):
        raise InputTypeError(f"{describe(model_or_encoding)} is not a converted model: call convert first")
    return widen_encoding(model_or_encoding, block)
