"""Configurations as YAML files and text of the command line, and what is wrong with them in a line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from liere.config_fields import Section
from liere.data.registry import find_section
from liere.errors import InputError, suggest
from liere.files.reading import DamagedError, read_bytes, reason, shorten
from liere.files.shipped import find_recipe
from liere.runs.config import RunConfig, config_fields
from liere.terminal.messages import warn

# `liere.runs.config` has told what to install where these are missing.
import yaml  # isort: skip
from pydantic import ValidationError  # isort: skip

__all__ = ["explain", "load_yaml", "parse_config", "read_config"]


MAX_BYTES = 100_000  # of a configuration; real ones have a few thousand, and parsing takes 10 s per million
MOST_DIGITS = 300  # of an integer: more are beyond floats, and those with colons take time that grows with the square


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Take 1e-3 for a number, as everybody else does, and nothing twice: aliases of aliases grow without bounds."""

    def construct_yaml_int(self, node: Any) -> int:
        """Return an integer, which must not be too long to be shown."""
        if len(str(node.value)) > MOST_DIGITS:
            raise yaml.constructor.ConstructorError(
                None, None, f"an integer has {len(node.value):,} digits, more than {MOST_DIGITS}", node.start_mark
            )
        return int(super().construct_yaml_int(node))

    def construct_yaml_str(self, node: Any) -> str:
        """Return text, in which nothing is hidden from the system: names of files end at a NUL."""
        if "\0" in str(node.value):
            raise yaml.constructor.ConstructorError(None, None, "text must not hold NUL characters", node.start_mark)
        return str(super().construct_yaml_str(node))

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return the next node, which must not refer to another one."""
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise yaml.composer.ComposerError(
                None, None, f"the alias *{event.anchor} is not allowed: write the value out", event.start_mark
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Return fields by name, each of which must be there once."""
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{name!r} is there twice", node.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.add_constructor("tag:yaml.org,2002:str", _Loader.construct_yaml_str)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def load_yaml(text: str) -> Any:
    """Return what YAML text says, without executing anything.

    Raises:
        yaml.YAMLError: If it is something else, or a value that nothing can hold.

    Example:
        >>> load_yaml("[1e-3, 1, null, word]")
        [0.001, 1, None, 'word']
    """
    try:
        return yaml.load(text, _Loader)
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None
    except (ValueError, OverflowError, LookupError, AttributeError) as error:  # of numbers, dates and encodings
        raise yaml.YAMLError(str(error)) from None


def read_config(path: Path) -> dict[str, Any]:
    """Read a YAML file as nested dicts; a path like `experiments/...` that is not there is that of the package.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is not YAML of sections and fields.
    """
    if not path.exists():
        shipped = find_recipe(path)
        if shipped is None:
            raise FileNotFoundError(f"no configuration at {path}")
        warn(f"liere: there is no {path} here: using {shipped}, which comes with the package")
        path = shipped
    try:
        text = read_bytes(path, MAX_BYTES).decode("utf-8-sig")
    except DamagedError as error:
        raise InputError(
            f"{path} is not a configuration: it must be a file of at most {MAX_BYTES:,} bytes ({error})"
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not YAML: {reason(error)}") from None
    try:
        content = load_yaml(text)
    except yaml.YAMLError as error:
        raise InputError(f"{path} is not YAML: {reason(error)}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InputError(
            f"{path} must hold sections like 'model:' with fields below them, got {shorten(repr(content))}"
        )
    for name in (key for part in (content, *content.values()) if isinstance(part, dict) for key in part):
        if not isinstance(name, str):
            raise InputError(f"{path}: unknown field {shorten(repr(name))}: names are words")
    return content


def parse_config(content: dict[str, Any], overrides: dict[str, str] | None = None, source: str = "") -> RunConfig:
    """Check a configuration, field by field.

    Args:
        content: Nested dicts, as `read_config` returns them.
        overrides: New values by dotted name, as text of the command line: YAML, so `[1, 4]` and `null` are understood.
        source: Where the content came from, for messages.

    Raises:
        ValueError: On an unknown field, with the nearest one, or a value of a wrong type.

    Example:
        >>> parse_config({"model": {"dim": 64}}, {"model.dim": "96"}).model.dim
        96
        >>> parse_config({"model": {"dimm": 64}})
        Traceback (most recent call last):
            ...
        liere.errors.InputError: unknown field model.dimm: did you mean 'dim'?
    """
    merged = {name: dict(part) if isinstance(part, dict) else part for name, part in content.items()}
    for name, text in (overrides or {}).items():
        *sections, field = name.split(".")
        place = merged
        for section in sections:
            part = place.get(section) or {}
            if isinstance(part, Section):
                raise InputError(f"--{name} cannot be given beside {section} as an object: set {field} in that object")
            place[section] = place = part if isinstance(part, dict) else {}
        place[field] = _value(name, text)
    try:
        return RunConfig.model_validate(merged)
    except ValidationError as error:
        raise InputError(_blamed(explain(error), overrides or {}, source)) from None


def _blamed(message: str, overrides: dict[str, str], source: str) -> str:
    """Put what is to blame before a message: a field of the command line, if it is about one, or the file."""
    for name, text in overrides.items():
        if message.startswith(f"{name} must be "):
            return f"--{message}"
        if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", message):
            return f"--{name} {shorten(text)}: {message}"
    return f"{source}: {message}" if source else message


def _value(name: str, text: str) -> Any:
    try:
        return load_yaml(text)
    except yaml.YAMLError:
        raise InputError(f"--{name} {text!r} is not a value: quote it, or see docs/training.md") from None


def explain(error: ValidationError) -> str:
    """Say in one line what is wrong with the first wrong field."""
    first = error.errors()[0]
    known = [name for name, _ in config_fields()]
    path = [str(part) for part in first["loc"]]
    if path[:1] == ["data"] and len(path) > 1 and find_section(path[1]):
        del path[1]  # pydantic names the data set before its fields
    if first["type"] == "value_error":
        return str(first["ctx"]["error"])
    if first["type"] == "extra_forbidden":
        siblings = known if path[:-1] else RunConfig.model_fields
        prefix = "".join(f"{part}." for part in path[:-1])
        names = [name.removeprefix(prefix) for name in siblings if name.startswith(prefix)]
        return f"unknown field {shorten('.'.join(path))}: {suggest(path[-1], names)}"
    while len(path) > 1 and ".".join(path) not in known:
        path.pop()  # inside a field: one of several types, or an entry
    expected = first["msg"].removeprefix("Input should be ")
    if first["type"] != "literal_error":  # of which the commas are between the values
        expected = expected.partition(",")[0]
    value = first["input"]
    return f"{'.'.join(path)} must be {expected}, got {shorten(repr(value))} of type {type(value).__name__}"
