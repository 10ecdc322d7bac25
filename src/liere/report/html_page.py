"""The report as one page of HTML that needs nothing else: no network, no scripts, no other files."""

from __future__ import annotations

import re
from base64 import b64encode
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup

from liere.report.charts import Drawing
from liere.report.encoding_labels import colours_of, plain_label
from liere.report.facts import circumstances, machine_facts
from liere.report.outline import outline
from liere.report.picture_data import Pictures
from liere.report.result_tables import bold_note, pair_tables, result_table, run_table, seed_table
from liere.report.table_cells import Table
from liere.report.verdict import finding

__all__ = ["page_template", "render_page"]


def render_page(
    comparison: dict[str, Any], pictures: Pictures, drawings: dict[str, Drawing], name: str = "report"
) -> str:
    """Return the page.

    Args:
        comparison: What was found.
        pictures: Images of the task, and attention.
        drawings: Figures by their captions, in the order to show.
        name: What the report's files are called.
    """
    return page_template("page.html.j2").render(
        comparison=comparison,
        finding=finding(comparison),
        circumstances=circumstances(comparison),
        results=result_table(comparison),
        drawings=drawings,
        samples=pictures.samples,
        attention=pictures.attention_by_size(),
        bold=bold_note(comparison),
        pairs=pair_tables(comparison),
        seeds=seed_table(comparison),
        runs=run_table(comparison),
        machine=machine_facts(comparison),
        colours=colours_of(comparison),
        name=name,
    )


def page_template(name: str) -> Template:
    """Return one of the templates beside this file, with the filters and the style that all pages share."""
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
        "outline": outline,
        "unbroken": _unbroken,
    }
    environment.globals |= {"column_groups": _column_groups, "style": Markup(_text("style.css"))}
    return environment.get_template(name)


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _data_uri(png: bytes) -> str:
    return f"data:image/png;base64,{b64encode(png).decode()}"


def _unbroken(text: str) -> str:
    """Keep a number and its unit in one line."""
    return re.sub(r"(?<=\d) (?=(%|px))|(?<=\bp) (?=[<=])|(?<=[<=]) (?=\d)", "\N{NO-BREAK SPACE}", text)


def _column_groups(table: Table) -> list[tuple[str, int]]:
    """Return neighbouring columns of one group together, as the group and how many they are."""
    groups: list[tuple[str, int]] = []
    for column in table.columns:
        if column.group and groups and groups[-1][0] == column.group:
            groups[-1] = (column.group, groups[-1][1] + 1)
        else:
            groups.append((column.group, 1))
    return groups
