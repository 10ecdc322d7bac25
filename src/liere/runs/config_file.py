"""Configurations from YAML files and command-line options, with one-line error messages."""

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

# `liere.runs.config` reports if these are not installed.
import yaml  # isort: skip
from pydantic import ValidationError  # isort: skip

__all__ = ["explain", "load_yaml", "parse_config", "read_config"]


MAX_BYTES = 100_000  # real configurations have a few thousand, and parsing takes 10 s per million
MOST_LEVELS = 100  # of nested lists and maps: pydantic writes at most 255
PLAIN = ("null", "bool", "int", "float", "str", "seq", "map")  # tags of values that can be written to YAML again
MOST_DIGITS = 300  # of an integer: longer ones exceed floats, and parsing those with colons takes quadratic time


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Parse 1e-3 as a number and dates as text; reject repeated fields, and aliases, which can expand without limit."""

    yaml_constructors = {  # noqa: RUF012  (that for None raises an error about the tag)
        tag: make
        for tag, make in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag.rpartition(":")[2] in PLAIN
    }
    level = 0

    def construct_yaml_int(self, node: Any) -> int:
        """Return an integer; reject ones with too many digits."""
        if len(str(node.value)) > MOST_DIGITS:
            raise yaml.constructor.ConstructorError(
                None, None, f"an integer has {len(node.value):,} digits, more than {MOST_DIGITS}", node.start_mark
            )
        return int(super().construct_yaml_int(node))

    def construct_yaml_str(self, node: Any) -> str:
        """Return text; reject NUL characters, which would truncate file names."""
        if "\0" in str(node.value):
            raise yaml.constructor.ConstructorError(None, None, "text must not contain NUL characters", node.start_mark)
        return str(super().construct_yaml_str(node))

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return the next node; reject aliases and deep nesting."""
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise yaml.composer.ComposerError(
                None, None, f"the alias *{event.anchor} is not allowed: write the value out", event.start_mark
            )
        if self.level == MOST_LEVELS:
            raise yaml.YAMLError(f"it is nested too deeply: use at most {MOST_LEVELS} levels")
        self.level += 1
        node = super().compose_node(parent, index)
        self.level -= 1
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Return fields by name; reject repeated ones."""
        pairs = node.value if isinstance(node, yaml.MappingNode) else []  # otherwise the parent class raises an error
        names = [key.value for key, _ in pairs if isinstance(key, yaml.ScalarNode)]
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{name!r} is repeated", node.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.add_constructor("tag:yaml.org,2002:str", _Loader.construct_yaml_str)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _Loader.construct_yaml_str)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def load_yaml(text: str) -> Any:
    """Return the value of YAML text, without executing anything.

    Raises:
        yaml.YAMLError: If it is not valid YAML, or a value is out of range.

    Example:
        >>> load_yaml("[1e-3, 1, null, word]")
        [0.001, 1, None, 'word']
    """
    try:
        return yaml.load(text, _Loader)
    except (ValueError, OverflowError, LookupError) as error:  # invalid numbers, encodings
        raise yaml.YAMLError(str(error)) from None


def read_config(path: Path) -> dict[str, Any]:
    """Return a YAML file as nested dicts; a missing `experiments/...` is read from the installed package.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is not YAML with sections and fields.
    """
    if not path.exists():
        shipped = find_recipe(path)
        if shipped is None:
            raise FileNotFoundError(f"there is no configuration file {path}: check the path")
        warn(f"liere: {path} does not exist here: using {shipped} from the installed package")
        path = shipped
    try:
        text = read_bytes(path, MAX_BYTES).decode("utf-8-sig")
    except DamagedError as error:
        raise InputError(
            f"{path} is not a configuration, which must be a file of at most {MAX_BYTES:,} bytes ({error})"
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
            f"{path} must contain sections such as 'model:' with fields below them, got {shorten(repr(content))}"
        )
    for name in (key for part in (content, *content.values()) if isinstance(part, dict) for key in part):
        if not isinstance(name, str):
            raise InputError(f"{path}: unknown field {shorten(repr(name))}: names must be text")
    return content


def parse_config(content: dict[str, Any], overrides: dict[str, str] | None = None, source: str = "") -> RunConfig:
    """Return the checked configuration.

    Args:
        content: Nested dicts, as `read_config` returns them.
        overrides: New values by dotted name, as on the command line: YAML text such as `[1, 4]` or `null`.
        source: Origin of the content, for error messages.

    Raises:
        ValueError: If a field is unknown or has an invalid value.

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
                raise InputError(f"--{name} cannot be combined with {section} as an object: set {field} in that object")
            place[section] = place = part if isinstance(part, dict) else {}
        place[field] = _value(name, text)
    try:
        return RunConfig.model_validate(merged)
    except ValidationError as error:
        raise InputError(_blamed(explain(error), overrides or {}, source)) from None


def _blamed(message: str, overrides: dict[str, str], source: str) -> str:
    """Prefix a message with its source: the command-line option that it is about, or else the file."""
    for name, text in overrides.items():
        if message.startswith(f"{name} must "):
            return f"--{message}"
        if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", message):
            return f"--{name} {shorten(text)}: {message}"
    return f"{source}: {message}" if source else message


def _value(name: str, text: str) -> Any:
    try:
        return load_yaml(text)
    except yaml.YAMLError:
        raise InputError(
            f"--{name} {text!r} is not a valid YAML value: quote it, or see docs/how-to/train.md"
        ) from None


def explain(error: ValidationError) -> str:
    """Return a one-line message about the first invalid field."""
    first = error.errors()[0]
    known = [name for name, _ in config_fields()]
    path = [str(part) for part in first["loc"]]
    if path[:1] == ["data"] and len(path) > 1 and find_section(path[1]):
        del path[1]  # pydantic inserts the name of the data set
    if first["type"] == "value_error":
        return str(first["ctx"]["error"])
    if first["type"] == "extra_forbidden":
        siblings = known if path[:-1] else RunConfig.model_fields
        prefix = "".join(f"{part}." for part in path[:-1])
        names = [name.removeprefix(prefix) for name in siblings if name.startswith(prefix)]
        return f"unknown field {shorten('.'.join(path))}: {suggest(path[-1], names)}"
    while len(path) > 1 and ".".join(path) not in known:
        path.pop()  # pydantic adds the type or the entry inside a field
    value = first["input"]
    return f"{'.'.join(path)} must {_expected(error)}, got {shorten(repr(value))} of type {type(value).__name__}"


def _expected(error: ValidationError) -> str:
    """Return what the first invalid value must be or have, after "must"."""
    first = error.errors()[0]
    kind, place = first["type"], first["loc"][:-1]
    if kind == "missing" and isinstance(first["loc"][-1], str):  # of an experiment: sections have no required fields
        return "be given"
    if kind == "missing":  # an entry of a tuple
        indices = [one["loc"][-1] for one in error.errors() if (one["type"], one["loc"][:-1]) == (kind, place)]
        return f"have {int(indices[-1]) + 1} entries"
    if kind == "too_long":
        return f"have {first['ctx']['max_length']} entries"
    if kind == "tuple_type":
        return "be a list"
    expected = first["msg"].removeprefix("Input should be ")
    return f"be {expected if kind == 'literal_error' else expected.partition(',')[0]}"  # commas separate literals
