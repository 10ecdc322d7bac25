"""Encodings with options as text: `absolute:init_std=1`."""

from __future__ import annotations

import re
from typing import Any

from liere.encodings import PositionEncoding, find_encoding
from liere.encodings.registry import encoding_name
from liere.errors import InputError
from liere.runs.config_file import load_yaml

import yaml  # isort: skip  (`liere.runs.config` reports it if it is missing)

__all__ = ["encoding_text", "file_name", "parse_encoding"]


def parse_encoding(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the options of an encoding.

    The part after the first colon is the class in `package.module:Class`, unless the name before it is that of an
    encoding or the part has an equals sign: then it lists options.

    Raises:
        ValueError: If an option has no value.

    Example:
        >>> parse_encoding("liere8"), parse_encoding("absolute:init_std=1")
        (('liere8', {}), ('absolute', {'init_std': 1}))
        >>> parse_encoding("my.module:Encoding"), parse_encoding("my.module:Encoding:amount=1")
        (('my.module:Encoding', {}), ('my.module:Encoding', {'amount': 1}))
    """
    name, colon, rest = text.partition(":")
    class_name, class_colon, class_rest = rest.partition(":")
    if class_name and "=" not in class_name and not _is_known(name):
        name, colon, rest = f"{name}:{class_name}", class_colon, class_rest
    options = {}
    for part in re.split(r",(?![^\[{]*[\]}])", rest) if colon else ():  # commas in brackets do not separate options
        option, equals, value = part.partition("=")
        try:
            options[option] = load_yaml(value)
        except yaml.YAMLError:
            equals = ""
        if not equals or not option:
            raise InputError(f"encoding {text!r} has an option without a value: write absolute:init_std=1,other=2")
    return name, options


def encoding_text(encoding: str | type[PositionEncoding]) -> str:
    """Return an encoding as text for `parse_encoding`; a class becomes its module and name.

    Raises:
        TypeError: If it is neither text nor an encoding class.

    Example:
        >>> from liere import LieRE
        >>> encoding_text("liere8:init_scale=3.14"), encoding_text(LieRE)
        ('liere8:init_scale=3.14', 'liere')
    """
    return encoding if isinstance(encoding, str) else encoding_name(encoding)


def file_name(encoding: str) -> str:
    """Return an encoding as a valid file name.

    Example:
        >>> file_name("absolute:init_std=1")
        'absolute-init_std-1'
    """
    return "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in encoding)


def _is_known(name: str) -> bool:
    """Return whether a name without a colon is that of an encoding."""
    try:
        find_encoding(name)
    except ValueError:
        return False
    return True
