"""Position encodings, one a file. A file in this folder is found by itself; nothing else has to be told of it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

from liere.encodings.contract import PositionEncoding, TransformerShape
from liere.encodings.rotary import RotaryEncoding
from liere.errors import UnknownOptionError, suggest

__all__ = [
    "PositionEncoding",
    "RotaryEncoding",
    "TransformerShape",
    "create_encoding",
    "find_encoding",
    "list_encodings",
]


def _find_encodings() -> dict[str, type[PositionEncoding]]:
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    classes = [
        cls
        for module in modules
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, PositionEncoding) and cls.__module__ == module.__name__
    ]
    return {cls.name: cls for cls in classes if "name" in vars(cls)}


_ENCODINGS = _find_encodings()


def list_encodings() -> list[str]:
    """Return the names that `create_model` knows; `<b>` stands for a block size, and may be left out.

    Example:
        >>> {"absolute", "liere<b>", "none", "rope_mixed", "sincos", "visionllama"} <= set(list_encodings())
        True
    """
    return sorted(_ENCODINGS)


def find_encoding(name: str) -> tuple[type[PositionEncoding], dict[str, Any]]:
    """Return the class that a name means, and the options that the name implies.

    Raises:
        TypeError: If `name` is not a string.
        ValueError: If no encoding has that name.

    Example:
        >>> find_encoding("liere8")
        (<class 'liere.encodings.liere.LieRE'>, {'block_size': 8})
    """
    if not isinstance(name, str):
        raise TypeError(f"encoding must be a name or a PositionEncoding, got {type(name).__name__}: try 'liere8'")
    for cls in _ENCODINGS.values():
        implied = cls.match(name)
        if implied is not None:
            return cls, implied
    examples = [example for known in list_encodings() for example in _examples(known)]
    raise ValueError(f"unknown encoding {name!r}: {suggest(name, examples)}")


def create_encoding(name: str, shape: TransformerShape, **options: Any) -> PositionEncoding:
    """Make the encoding of that name for a transformer.

    Args:
        name: One of `list_encodings()`, such as `"absolute"`, `"liere"` (dense) or `"liere8"`.
        shape: Dimensions of the transformer.
        **options: Options of that encoding, such as `init_std` or `share_heads`.

    Raises:
        TypeError: If `name` is not a string, or on an option that the encoding does not have.
        ValueError: If no encoding has that name.

    Example:
        >>> shape = TransformerShape(grid=(8, 8), dim=384, num_heads=6, depth=12)
        >>> create_encoding("liere8", shape, share_heads=True).generators.shape
        torch.Size([12, 2, 1, 8, 28])
    """
    cls, implied = find_encoding(name)
    known_options = list(inspect.signature(cls.build).parameters)[1:]
    for option in options:
        if option in implied:
            raise TypeError(f"{option} is part of the name {name!r}: leave out {option}={options[option]!r}")
        if option not in known_options:
            hint = suggest(option, known_options) if known_options else "it has no options"
            raise UnknownOptionError(f"encoding {name!r} has no option {option!r}: {hint}")
    return cls.build(shape, **implied, **options)


def _examples(name: str) -> list[str]:
    return [name.replace("<b>", size) for size in ("", "8", "64")] if "<b>" in name else [name]
