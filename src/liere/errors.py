"""Errors that name the argument, the value and the remedy."""

from __future__ import annotations

import difflib
import operator
import re
import reprlib
from collections.abc import Iterable
from numbers import Real
from typing import Any

__all__ = [
    "InputError",
    "InputTypeError",
    "UnknownOptionError",
    "UserError",
    "check_amount",
    "check_least",
    "check_number",
    "check_switches",
    "nearest",
    "suggest",
    "visible",
    "whole_number",
]


GREATEST_AMOUNT = 1e12  # far beyond any use; in fp32 its square is finite
LIMIT_OF_INTS = 2**63  # torch stores int64


class UserError(Exception):
    """An error that the user can fix; the message says in one line what is wrong and how to fix it.

    The command line prints the message and exits with code 2. Any other exception is a bug and keeps its traceback.
    """


class InputError(UserError, ValueError):
    """A wrong value."""


class InputTypeError(UserError, TypeError):
    """A value of the wrong type, or an unknown argument."""


class UnknownOptionError(InputTypeError):
    """An unknown option."""


def whole_number(name: str, value: object) -> int:
    """Return `value` as an int, or raise a `TypeError` that names the argument.

    Example:
        >>> whole_number("block_size", 8.0)
        Traceback (most recent call last):
            ...
        liere.errors.InputTypeError: block_size must be an int, got 8.0 of type float
    """
    if isinstance(value, bool):
        raise InputTypeError(f"{name} must be an int, got {_shown(value)}")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputTypeError(f"{name} must be an int, got {_shown(value)}") from None
    if abs(number) >= LIMIT_OF_INTS:
        raise InputError(f"{name} must be below 2**63, got {reprlib.repr(number)}")
    return number


def check_number(name: str, value: object) -> None:
    """Raise a `TypeError` that names the argument if `value` is not a real number.

    Example:
        >>> check_number("dropout", "little")
        Traceback (most recent call last):
            ...
        liere.errors.InputTypeError: dropout must be a number, got 'little' of type str
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputTypeError(f"{name} must be a number, got {_shown(value)}")


def check_amount(name: str, value: Any) -> None:
    """Raise an error that names the argument if `value` is not a number from 0 to 1e12.

    Example:
        >>> check_amount("init_scale", -1.0)
        Traceback (most recent call last):
            ...
        liere.errors.InputError: init_scale must be between 0 and 1e+12, got -1.0
    """
    check_number(name, value)
    if not 0 <= value <= GREATEST_AMOUNT:
        raise InputError(f"{name} must be between 0 and {GREATEST_AMOUNT:g}, got {reprlib.repr(value)}")


def check_switches(**given: object) -> None:
    """Raise a `TypeError` that names the argument if one of the values is not a bool, 0 or 1.

    Example:
        >>> check_switches(share_heads="yes")
        Traceback (most recent call last):
            ...
        liere.errors.InputTypeError: share_heads must be true or false, got 'yes' of type str
    """
    for name, value in given.items():
        is_bool = type(value).__name__ in ("bool", "bool_")  # also of NumPy
        if not is_bool and not (isinstance(value, int) and value in (0, 1)):
            raise InputTypeError(f"{name} must be true or false, got {_shown(value)}")


def _shown(value: object) -> str:
    return f"{reprlib.repr(value)} of type {type(value).__name__}"


def check_least(name: str, value: int, least: int) -> None:
    """Raise a `ValueError` that names the argument if `value` is below `least`.

    Example:
        >>> check_least("num_registers", -1, 0)
        Traceback (most recent call last):
            ...
        liere.errors.InputError: num_registers must be at least 0, got -1
    """
    if value < least:
        raise InputError(f"{name} must be at least {least}, got {value}")


ALIASES = {
    "lr": "learning_rate",
    "wd": "weight_decay",
    "warmup": "warmup_steps",
    "grad_clip": "clip",
    "bs": "batch_size",
    "batch": "batch_size",
    "epochs": "examples",
    "steps": "examples",
    "max_steps": "examples",
    "num_workers": "workers",
    "gpus": "devices",
    "img_size": "size",
    "layers": "depth",
    "num_layers": "depth",
    "num_heads": "heads",
    "width": "dim",
    "embed_dim": "dim",
    "position_encoding": "encoding",
    "output": "out",
}
"""Names used by other libraries, and their equivalents here."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that `name` probably stands for, as a misspelling or an alias, or None.

    Example:
        >>> nearest("--optimizer.lr", ["--optimizer.clip", "--optimizer.learning_rate"])
        '--optimizer.learning_rate'
    """
    known, last = list(known), re.split(r"[.-]", name.lower())[-1]
    if last not in ALIASES or name in known:
        return next(iter(difflib.get_close_matches(name.lower(), known, n=1)), None)
    same = [one for one in known if re.split(r"[.-]", one)[-1] == ALIASES[last]]
    # Prefer the same section, then other sections, then options without a section.
    same.sort(key=lambda one: (one.rpartition(".")[0] != name.rpartition(".")[0] or "." not in one, "." not in one))
    return next(iter(same), None)


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


def visible(text: str) -> str:
    """Return text as a single line that is safe to print: nonprintable characters are escaped as in Python.

    File names and file contents may contain line breaks, and codes that move the cursor or reverse the text direction.

    Example:
        >>> print(visible("a name\\n\\x1b[2Jof a file"))
        a name\\n\\x1b[2Jof a file
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text
    )
