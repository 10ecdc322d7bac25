"""The configuration section of any data set, selected by `data.name`.

To add a data set, add a file next to this one and its class to `SECTIONS`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Union

from liere.data.cifar import Cifar10Data, Cifar100Data
from liere.data.imagenet import ImageNetData
from liere.data.images import ImagesData
from liere.data.npz import NpzData
from liere.data.python import PythonData
from liere.data.section import DEFAULT_NAME, DataSection
from liere.data.spatial import SpatialData
from liere.data.ucf101 import Ucf101Data
from liere.data.videos import VideosData
from liere.errors import InputError
from liere.files.reading import shorten

from pydantic import BeforeValidator, Field  # isort: skip  (`liere.config_fields` reports it if it is missing)
from pydantic.fields import FieldInfo  # isort: skip

__all__ = ["SECTIONS", "DataConfig", "data_fields", "find_section", "union_of"]

SECTIONS: tuple[type[DataSection], ...] = (
    SpatialData,
    Cifar10Data,
    Cifar100Data,
    ImageNetData,
    Ucf101Data,
    ImagesData,
    VideosData,
    NpzData,
    PythonData,
)
FEW_OWNERS = 3


def union_of(sections: Sequence[type[DataSection]]) -> Any:
    """Return the type of a field that holds the section of any of these data sets.

    A section without a name is the spatial task's. Fields of other data sets, which old configurations list, are
    ignored if they have their default values, and rejected otherwise.
    """
    return Annotated[
        Union[tuple(sections)],  # noqa: UP007  (of a tuple)
        Field(discriminator="name"),
        BeforeValidator(partial(_keep_own_fields, sections)),
    ]


def find_section(name: str, sections: Sequence[type[DataSection]] = SECTIONS) -> type[DataSection] | None:
    """Return the section of a data set; None if no data set has this name."""
    return next((section for section in sections if _name(section) == name), None)


def data_fields(sections: Sequence[type[DataSection]] = SECTIONS) -> Iterator[tuple[str, FieldInfo]]:
    """Yield the fields of all data sets that are command-line options, each once, with a description."""
    listed = [section for section in sections if section.is_on_command_line]
    names = ", ".join(map(_name, listed))
    yield "name", FieldInfo(default=DEFAULT_NAME, description=f"data set: {names}")
    fields: dict[str, FieldInfo] = {}
    for section in listed:
        fields |= {name: field for name, field in section.model_fields.items() if name not in {"name", *fields}}
    for name, field in fields.items():
        owners = _owners(name, listed)
        described = copy.copy(field)
        if len(owners) <= FEW_OWNERS:
            described.description = f"{', '.join(map(_name, owners))}: {field.description}"
        yield name, described


def _keep_own_fields(sections: Sequence[type[DataSection]], value: Any) -> Any:
    """Return the name and fields of a data set, without the fields of other data sets."""
    if not isinstance(value, dict):
        return value
    name = value.get("name", DEFAULT_NAME)
    section = find_section(name, sections)
    if section is None:
        *others, last = (repr(_name(one)) for one in sections)
        known = f"{', '.join(others)} or {last}"
        raise InputError(f"data.name must be {known}, got {shorten(repr(name))} of type {type(name).__name__}")
    kept: dict[Any, Any] = {"name": name}
    for field, content in _renamed(sections, value).items():
        owners = _owners(field, sections)
        if field in section.model_fields or not owners:  # pydantic reports unknown fields
            kept[field] = content
        elif all(content != owner.model_fields[field].default for owner in owners):
            named = ", ".join(map(_name, owners))
            raise InputError(f"data.{field} does not apply to {name}, only to {named}: remove it")
    return kept


def _renamed(sections: Sequence[type[DataSection]], fields: dict[Any, Any]) -> dict[Any, Any]:
    """Return the fields under their current names."""
    today = {old: new for section in sections for old, new in section.old_names.items()}
    return {today.get(name, name): value for name, value in fields.items() if today.get(name) not in fields}


def _owners(field: object, sections: Sequence[type[DataSection]]) -> list[type[DataSection]]:
    return [section for section in sections if field in section.model_fields]


def _name(section: type[DataSection]) -> str:
    return str(section.model_fields["name"].default)


if TYPE_CHECKING:
    DataConfig = DataSection
else:
    DataConfig = union_of(SECTIONS)
