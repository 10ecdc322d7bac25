"""The fields of a configuration, from the schema."""

from __future__ import annotations

import re
import types
import typing
from typing import Any, Literal

from liere.report.table_cells import Cell, Column, Table
from liere.runs.config import RunConfig, config_fields

__all__ = ["config_sections", "config_table", "type_text"]

NAMES = {int: "integer", float: "number", str: "text", bool: "true or false", types.NoneType: "null", dict: "mapping"}
LIMITS = {"ge": "at least", "gt": "greater than", "le": "at most", "lt": "less than"}
UNLIMITED = 10**4  # limits as large as this only guard against slips of the keyboard


def config_sections() -> list[str]:
    """Return the names of all sections; `""` is the top level."""
    return list(dict.fromkeys(name.rpartition(".")[0] for name, _ in config_fields()))


def config_table(section: str) -> Table:
    """Return the fields of a section: name, type, default and meaning; `top` is for those outside of all sections."""
    wanted = "" if section == "top" else section
    rows = []
    for name, field in config_fields():
        before, _, short = name.rpartition(".")
        if before == wanted:
            default = "null" if field.default is None else _value(field.default)
            kind = type_text(field.annotation, field.metadata) if field.annotation else "text"
            rows.append([Cell(f"`{short}`"), Cell(kind), Cell(f"`{default}`"), Cell(field.description or "")])
    if not rows:
        raise ValueError(f"a configuration has no section {section!r}: it has {', '.join(RunConfig.model_fields)}")
    columns = [Column(name, numeric=False) for name in ("field", "type", "default", "meaning")]
    return Table("", columns, rows)


def type_text(annotation: Any, metadata: typing.Sequence[Any] = ()) -> str:
    """Return a type for a reader.

    Example:
        >>> type_text(int | None), type_text(Literal["cls", "mean"]), type_text(tuple[float, float])
        ('integer or null', '`cls` or `mean`', 'two of: number')
    """
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return type_text(arguments[0], [*arguments[1:], *metadata])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(type_text(part) for part in arguments))
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        return (
            f"list of: {type_text(arguments[0])}" if arguments[1:] == (...,) else f"two of: {type_text(arguments[0])}"
        )
    name = NAMES.get(origin or annotation, getattr(annotation, "__name__", str(annotation)))
    return ", ".join([name, *_limits(metadata)])


def _limits(metadata: typing.Sequence[Any]) -> list[str]:
    """Return the limits of a number that a user may meet."""
    found = dict[str, float]()
    for constraint in metadata:
        parts = getattr(constraint, "metadata", None) or [constraint]
        for part in parts:
            found |= {name: getattr(part, name) for name in LIMITS if getattr(part, name, None) is not None}
    return [f"{LIMITS[name]} {value:g}" for name, value in found.items() if abs(value) < UNLIMITED]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value or '""'
    return re.sub(r"^\((.*)\)$", r"[\1]", str(value))
