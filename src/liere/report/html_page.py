"""The report as a self-contained HTML page: no network, no scripts, no other files."""

from __future__ import annotations

from typing import Any

from liere.report.comparison_setup import comparison_setup, machine_and_versions
from liere.report.drawing import Drawing
from liere.report.encoding_style import colors_of
from liere.report.headline import headline
from liere.report.page_template import page_template
from liere.report.pair_tables import bold_note, pair_tables
from liere.report.picture_data import ATTENTION_NOTE, Pictures
from liere.report.result_table import result_table
from liere.report.seed_tables import run_table, seed_table

__all__ = ["render_page"]


def render_page(
    comparison: dict[str, Any], pictures: Pictures, drawings: dict[str, Drawing], name: str = "report"
) -> str:
    """Return the report of a comparison as HTML.

    Args:
        comparison: The results, as `report.json` stores them.
        pictures: Images of the task, and attention maps.
        drawings: Figures by caption, in display order.
        name: Base name of the report's files.
    """
    return page_template("page.html.j2").render(
        comparison=comparison,
        headline=headline(comparison),
        comparison_setup=comparison_setup(comparison),
        results=result_table(comparison),
        drawings=drawings,
        samples=pictures.samples,
        attention=pictures.attention_by_size(),
        attention_note=ATTENTION_NOTE,
        bold=bold_note(comparison),
        pairs=pair_tables(comparison),
        seeds=seed_table(comparison),
        runs=run_table(comparison),
        machine=machine_and_versions(comparison),
        colors=colors_of(comparison),
        name=name,
    )
