"""Lookup of encodings by name: those of this library, registered ones, and `package.module:Class`."""

from __future__ import annotations

import importlib
import re
from typing import Any

from liere.encodings.absolute import Absolute
from liere.encodings.contract import PositionEncoding
from liere.encodings.liere import LieRE
from liere.encodings.none import NoEncoding
from liere.encodings.rope_mixed import RoPEMixed
from liere.encodings.sincos import SinCos
from liere.encodings.visionllama import VisionLLaMA
from liere.errors import InputError, InputTypeError, nearest, suggest

__all__ = ["encoding_name", "find_encoding", "is_built_in", "list_encodings", "register_encoding"]

_BUILT_IN: dict[str, type[PositionEncoding]] = {
    cls.name: cls for cls in (Absolute, LieRE, NoEncoding, RoPEMixed, SinCos, VisionLLaMA)
}
_REGISTERED: dict[str, type[PositionEncoding]] = {}
_BY_PATH: dict[str, type[PositionEncoding]] = {}
"""Classes by `package.module:Class`: registered ones, and those that cannot be imported from there."""
_PATH = re.compile(r"[^\s:=,]+:[^\s:=,]+")


def list_encodings() -> list[str]:
    """Return the encoding names that `create_model` accepts; `<b>` stands for a block size and may be omitted.

    Example:
        >>> {"absolute", "liere<b>", "none", "rope_mixed", "sincos", "visionllama"} <= set(list_encodings())
        True
    """
    return sorted(_BUILT_IN | _REGISTERED)


def register_encoding(cls: type[PositionEncoding]) -> type[PositionEncoding]:
    """Register an encoding under its `name`, so that it can be used by name; also works as a decorator.

    Args:
        cls: A subclass of `PositionEncoding` with a `name` and a `build` method.

    Returns:
        The class itself.

    Raises:
        TypeError: If it is not a subclass of `PositionEncoding`.
        ValueError: If it has no name, or another encoding has that name.

    Example:
        >>> class Nothing(PositionEncoding):
        ...     name = "nothing_at_all"
        ...     @classmethod
        ...     def build(cls, shape):
        ...         return cls()
        >>> register_encoding(Nothing) is Nothing and "nothing_at_all" in list_encodings()
        True
        >>> del _REGISTERED["nothing_at_all"]
    """
    _check_class(cls, repr(cls))
    name = getattr(cls, "name", None)
    if not isinstance(name, str) or not re.fullmatch(r"[^\s:=,]+", name):
        raise InputError(
            f"{_path(cls)} needs a name without spaces, colons, commas or equals signs, got {name!r}: "
            'set name = "my_encoding" in the class'
        )
    other = _find_by_name(name)
    # If a notebook cell or module is executed again, its class replaces the previous one.
    if other is not None and _path(other[0]) != _path(cls):
        raise InputError(f"encoding name {name!r} of {_path(cls)} is already used by {_path(other[0])}: rename it")
    _REGISTERED[name] = _BY_PATH[_path(cls)] = cls
    return cls


def find_encoding(name: str) -> tuple[type[PositionEncoding], dict[str, Any]]:
    """Return the class that a name stands for, and the options that the name implies.

    A name like `package.module:Class` imports that module.

    Raises:
        TypeError: If `name` is not a string, or refers to something that is not an encoding.
        ValueError: If there is no encoding with that name.

    Example:
        >>> find_encoding("liere8")
        (<class 'liere.encodings.liere.LieRE'>, {'block_size': 8})
        >>> find_encoding("liere.encodings.sincos:SinCos")
        (<class 'liere.encodings.sincos.SinCos'>, {})
    """
    if not isinstance(name, str):
        raise InputTypeError(f"encoding must be a name or a PositionEncoding, got {type(name).__name__}: try 'liere8'")
    found = _find_by_name(name)
    if found is not None:
        return found
    if _PATH.fullmatch(name):
        return _find_by_path(name), {}
    examples = [example for known in list_encodings() for example in _examples(known)]
    hint = suggest(name, examples)
    own = "" if nearest(name, examples) else ", or register your own with liere.register_encoding first"
    raise InputError(f"unknown encoding {name!r}: {hint}{own}")


def is_built_in(cls: type[PositionEncoding]) -> bool:
    """Return whether an encoding is part of this library."""
    return cls in _BUILT_IN.values()


def encoding_name(cls: type[PositionEncoding]) -> str:
    """Return the name by which `find_encoding` finds a class, registering its path in this process if necessary.

    Raises:
        TypeError: If it is not a subclass of `PositionEncoding`.

    Example:
        >>> encoding_name(LieRE)
        'liere'
    """
    _check_class(cls, repr(cls))
    if is_built_in(cls):
        return cls.name.replace("<b>", "")
    _BY_PATH[_path(cls)] = cls
    return _path(cls)


def _path(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _find_by_name(name: str) -> tuple[type[PositionEncoding], dict[str, Any]] | None:
    if name in _REGISTERED:
        return _REGISTERED[name], _REGISTERED[name].match(name) or {}
    for cls in (*_BUILT_IN.values(), *_REGISTERED.values()):
        implied = cls.match(name)
        if implied is not None:
            return cls, implied
    return None


def _find_by_path(path: str) -> type[PositionEncoding]:
    if path in _BY_PATH:
        return _BY_PATH[path]
    module_name, _, class_name = path.partition(":")
    found: Any = _import(module_name, path)
    for part in class_name.split("."):
        found = getattr(found, part, None)
    if found is None and (module_name == "__main__" or "<locals>" in class_name):  # defined by an earlier process
        short = class_name.rpartition(".")[2]
        found = next((cls for cls in _REGISTERED.values() if cls.__name__ == short), None)
        if found is None:
            raise InputError(
                f"encoding {path!r} was defined in a script, notebook or function: define or import {short} here and "
                f"call liere.register_encoding({short}) first"
            )
    if found is None:
        raise InputError(f"encoding {path!r}: module {module_name} has no {class_name!r}; check the spelling")
    _check_class(found, f"encoding {path!r}")
    return found


def _import(module: str, path: str) -> object:
    if not all(part.isidentifier() for part in module.split(".")):
        raise InputError(f"encoding {path!r}: {module!r} is not a valid module name; write package.module:Class")
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise ImportError(f"encoding {path!r} needs {error.name}: pip install {error.name}") from error
        raise InputError(
            f"encoding {path!r}: there is no module {error.name!r}; install it, or put its folder on PYTHONPATH"
        ) from None


def _check_class(cls: object, what: str) -> None:
    if not (isinstance(cls, type) and issubclass(cls, PositionEncoding)):
        raise InputTypeError(f"{what} is not a position encoding: derive it from liere.PositionEncoding")


def _examples(name: str) -> list[str]:
    return [name.replace("<b>", size) for size in ("", "8", "64")] if "<b>" in name else [name]
