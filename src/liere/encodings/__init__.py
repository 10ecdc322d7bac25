"""Position encodings, one per file, with a common interface; `liere.encodings.registry` finds them by name."""

from __future__ import annotations

import inspect
from typing import Any

from liere.encodings.contract import PositionEncoding, TransformerShape
from liere.encodings.registry import find_encoding, list_encodings, register_encoding
from liere.encodings.rotary import RotaryEncoding
from liere.errors import InputTypeError, UnknownOptionError, suggest

__all__ = [
    "PositionEncoding",
    "RotaryEncoding",
    "TransformerShape",
    "create_encoding",
    "find_encoding",
    "list_encodings",
    "register_encoding",
]


VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def create_encoding(name: str, shape: TransformerShape, /, **options: Any) -> PositionEncoding:
    """Create an encoding by name for a transformer.

    Args:
        name: One of `list_encodings()`, such as `"absolute"`, `"liere"` (dense) or `"liere8"`, or
            `"package.module:Class"` for one defined elsewhere.
        shape: Dimensions of the transformer.
        **options: Options of that encoding, such as `init_std` or `share_heads`.

    Raises:
        TypeError: If `name` is not a string, the encoding does not have an option, or a value has the wrong type.
        ValueError: If no encoding has that name, or a value is out of range.

    Example:
        >>> shape = TransformerShape(grid=(8, 8), dim=384, num_heads=6, depth=12)
        >>> create_encoding("liere8", shape, share_heads=True).generators.shape
        torch.Size([12, 2, 1, 8, 28])
    """
    cls, implied = find_encoding(name)
    first, *parameters = inspect.signature(cls.build).parameters.values()
    known_options = [parameter.name for parameter in parameters if parameter.kind not in VARIADIC]
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    for option in options:
        if option in implied:
            raise InputTypeError(f"{option} is part of the name {name!r}: leave out {option}={options[option]!r}")
        if option == first.name or (option not in known_options and not takes_any):
            hint = suggest(option, known_options) if known_options else "it has no options"
            raise UnknownOptionError(f"encoding {name!r} has no option {option!r}: {hint}")
    for parameter in parameters:
        is_needed = parameter.name in known_options and parameter.default is inspect.Parameter.empty
        if is_needed and parameter.name not in {**implied, **options}:
            raise InputTypeError(f"encoding {name!r} needs the option {parameter.name!r}: pass {parameter.name}=...")
    return cls.build(shape, **implied, **options)
