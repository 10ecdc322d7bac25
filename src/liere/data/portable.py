"""Serialization of user objects for other processes."""

from __future__ import annotations

import importlib
import importlib.util
import pickle
import sys
from typing import Any

from liere.errors import InputTypeError

__all__ = ["dump_object", "load_object"]

REMEDY = "put its code in a module that can be imported, or install cloudpickle: pip install cloudpickle"


def dump_object(value: Any, name: str) -> bytes:
    """Return an object as bytes; classes defined in a notebook need cloudpickle.

    Args:
        value: The object.
        name: Name of the object in the error message.

    Raises:
        TypeError: If it cannot be sent to another process.

    Example:
        >>> load_object(dump_object([1, 2], "a list"))
        [1, 2]
    """
    has_cloudpickle = importlib.util.find_spec("cloudpickle") is not None
    try:
        content: bytes = importlib.import_module("cloudpickle" if has_cloudpickle else "pickle").dumps(value)
    except Exception as error:  # user classes may raise anything
        remedy = "remove members that belong to this process, such as open files" if has_cloudpickle else REMEDY
        raise InputTypeError(f"{name} cannot be sent to another process ({error}): {remedy}") from None
    if not has_cloudpickle and b"__main__" in content and not hasattr(sys.modules["__main__"], "__file__"):
        raise InputTypeError(
            f"{name} is defined in a notebook or a shell, where other processes cannot find it: {REMEDY}"
        )
    return content


def load_object(content: bytes) -> Any:
    """Return the object in the output of `dump_object`, in any process of the same program."""
    return pickle.loads(content)
