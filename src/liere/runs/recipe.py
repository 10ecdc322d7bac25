"""Recipes and fields passed from Python: files or dicts, values or text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from torch.utils.data import Dataset

from liere.data.section import DataSection
from liere.data.torch_datasets import GivenData, from_datasets
from liere.encodings import PositionEncoding
from liere.errors import InputTypeError
from liere.files.reading import shorten
from liere.runs.config_file import read_config
from liere.runs.encoding_text import encoding_text, parse_encoding

__all__ = ["Recipe", "data_section", "encoding_fields", "field_texts", "read_recipe"]


class Recipe(NamedTuple):
    """A configuration that is not yet checked.

    Attributes:
        content: Nested dicts.
        source: Origin of the content, for error messages; `""` for a dict.
        name: Name for its runs.
    """

    content: dict[str, Any]
    source: str
    name: str


def read_recipe(recipe: str | Path | Mapping[str, Any], data: Any = None) -> Recipe:
    """Return a recipe from a file or a dict.

    Args:
        recipe: A YAML file, or its content.
        data: Replacement for its `data` section: a section, or data sets as accepted by `data_section`; None to keep
            the section.

    Raises:
        FileNotFoundError: If there is no such file.
        TypeError: If it is neither a path nor a dict.
        ValueError: If it is not a configuration.

    Example:
        >>> read_recipe({"model": {"dim": 64}}).content
        {'model': {'dim': 64}}
    """
    if isinstance(recipe, Mapping):
        found = Recipe(dict(recipe), "", "run")
    elif isinstance(recipe, str | Path):
        found = Recipe(read_config(Path(recipe)), str(recipe), Path(recipe).stem)
    else:
        raise InputTypeError(
            f"recipe must be a YAML file or a dict, got {type(recipe).__name__}: pass its path or its content"
        )
    return found if data is None else found._replace(content=found.content | {"data": data_section(data)})


def data_section(data: Any) -> dict[str, Any]:
    """Return the `data` section of a configuration.

    Args:
        data: The section, as a dict or as in `RunConfig.data`; the result of `liere.data.from_datasets`; or one to
            three torch data sets of images and labels (train, test, val).

    Raises:
        TypeError: If it is something else.
        ValueError: If the data sets do not fit together.
    """
    if isinstance(data, Mapping):
        return dict(data)
    if isinstance(data, DataSection):
        return data.model_dump(mode="json")
    if isinstance(data, GivenData):
        return data.as_config()
    is_several = isinstance(data, tuple) or (isinstance(data, list) and all(isinstance(one, Dataset) for one in data))
    parts = tuple(data) if is_several else (data,)
    if not 1 <= len(parts) <= 3 or isinstance(data, str | Path):
        raise InputTypeError(
            f"data must be a section, a torch data set or up to three of them (train, test, val), got {data!r}: use "
            '{"name": "images", "root": ...} for a folder'
        )
    return from_datasets(*parts).as_config()


def field_texts(overrides: Mapping[str, Any] | None) -> dict[str, str]:
    """Return fields as command-line text: values are written as YAML, and text is unchanged.

    Example:
        >>> field_texts({"training.seed": 1, "optimizer.clip": None, "optimizer.learning_rate": "1e-3"})
        {'training.seed': '1', 'optimizer.clip': 'null', 'optimizer.learning_rate': '1e-3'}
    """
    given = {} if overrides is None else overrides
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InputTypeError(
            f"overrides must be a dict of fields such as {{'training.seed': 1}}, got {shorten(repr(overrides))}"
        )
    return {name: _text(name, value) for name, value in given.items()}


def encoding_fields(encoding: str | type[PositionEncoding] | None) -> dict[str, str]:
    """Return the configuration fields that an encoding sets, as text; an empty dict for None.

    Example:
        >>> encoding_fields("absolute:init_std=1")
        {'model.encoding': 'absolute', 'model.options': '{init_std: 1}'}
    """
    if encoding is None:
        return {}
    name, options = parse_encoding(encoding_text(encoding))
    return {"model.encoding": name} | ({"model.options": _text("model.options", options)} if options else {})


def _text(name: str, value: Any) -> str:
    if isinstance(value, str | Path):
        return str(value)
    if hasattr(value, "item"):  # a NumPy or torch scalar
        value = value.item()
    try:
        return str(yaml.safe_dump(value, default_flow_style=True, width=float("inf"))).removesuffix("\n...\n").strip()
    except yaml.YAMLError:
        raise InputTypeError(
            f"{name} must be a YAML value, got {type(value).__name__}: use numbers, text, lists or dicts"
        ) from None
