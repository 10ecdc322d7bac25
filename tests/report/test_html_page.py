from __future__ import annotations

import re

import pytest

pytest.importorskip("matplotlib")

from liere.report.drawing import Drawing
from liere.report.encoding_style import colors_of
from liere.report.html_page import render_page
from liere.report.picture_data import Pictures
from tests.report.report_data import make_comparison, make_pictures


def headings(page: str) -> list[str]:
    return re.findall(r"<h2[^>]*>(.*?)</h2>", page)


def test_all_sections_are_there_and_each_encoding_has_its_color():
    comparison = make_comparison()
    page = render_page(comparison, make_pictures(), {"Resolution": Drawing(b"", '<svg id="mine"></svg>', "alt")})
    assert headings(page) == [
        "Results",
        "Learning and resolution",
        "The task",
        "What the models attend to",
        "Are the differences significant?",
        "Seeds and runs",
        "How this report was made",
    ]
    assert '<svg id="mine"></svg>' in page
    table = page.partition("<tbody>")[2].partition("</tbody>")[0]
    assert re.findall(r"background: (#\w+)", table) == list(colors_of(comparison).values())
    assert page.count("data:image/png;base64,") == 6 + 2 * 5 * 4  # samples; sizes, encodings, layers


def test_sections_without_content_are_left_out():
    page = render_page(make_comparison(["liere8"], seeds=1), Pictures(), {}, "mine")
    assert headings(page) == ["Results", "Seeds and runs", "How this report was made"]
    assert "All numbers on this page are in mine.json" in page
