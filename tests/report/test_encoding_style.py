"""Names of encodings, which may be any text in the configuration of a run."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from liere.report.charts import draw_curves, draw_resolution
from liere.report.encoding_style import plain_label
from tests.report.report_data import make_comparison


@pytest.mark.parametrize("name", ["a\x07\x1b[2J", "\ud800", "two\nlines", "\u202edetrevni"])
def test_control_characters_in_names_are_shown_and_break_no_picture(name):
    assert plain_label(name).isprintable()
    comparison = make_comparison(["liere8"])
    for part in (*comparison["encodings"], *comparison["runs"]):
        part["encoding"] = name
    for draw in (draw_curves, draw_resolution):
        drawing = draw(comparison)
        assert drawing is not None
        assert name not in drawing.svg
