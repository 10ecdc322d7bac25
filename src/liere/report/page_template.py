"""Jinja templates of HTML pages, with their shared filters and style sheet."""

from __future__ import annotations

import re
from base64 import b64encode
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup

from liere.report.encoding_style import plain_label
from liere.report.table_cells import Table
from liere.report.yaml_text import yaml_text

__all__ = ["page_template"]


def page_template(name: str) -> Template:
    """Return a template of this package by file name, with the shared filters and style sheet."""
    environment = Environment(
        loader=FunctionLoader(_text),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "data_uri": _data_uri,
        "label": plain_label,
        "markup": Markup,
        "yaml": yaml_text,
        "unbroken": _unbroken,
    }
    environment.globals |= {"column_groups": _column_groups, "style": Markup(_text("style.css"))}
    return environment.get_template(name)


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _data_uri(png: bytes) -> str:
    return f"data:image/png;base64,{b64encode(png).decode()}"


def _unbroken(text: str) -> str:
    """Return text in which numbers and their units do not break across lines."""
    return re.sub(r"(?<=\d) (?=(%|px))|(?<=\bp) (?=[<=])|(?<=[<=]) (?=\d)", "\N{NO-BREAK SPACE}", text)


def _column_groups(table: Table) -> list[tuple[str, int]]:
    """Return each group of adjacent columns as its name and its width."""
    groups: list[tuple[str, int]] = []
    for column in table.columns:
        if column.group and groups and groups[-1][0] == column.group:
            groups[-1] = (column.group, groups[-1][1] + 1)
        else:
            groups.append((column.group, 1))
    return groups
