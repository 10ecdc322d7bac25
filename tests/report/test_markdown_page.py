from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from liere.report.drawing import Drawing
from liere.report.headline import headline
from liere.report.markdown_page import render_markdown
from liere.report.markdown_parts import escape
from liere.report.picture_data import Pictures, Sample
from tests.report.report_data import make_comparison


def test_sections_come_in_order_and_pictures_are_in_the_folder_of_the_report():
    comparison = make_comparison()
    pictures = Pictures([Sample(f"a {number}", b"") for number in range(6)])
    text = render_markdown(comparison, pictures, {"Resolution": Drawing(b"", "", "accuracy")}, "mine")
    parts = [
        "# Spatial reasoning at small scale",
        f"**{escape(headline(comparison))}**",
        "encodings: 5; seeds per encoding: 3",
        "| encoding |",
        "![accuracy](mine/overview.png)",
        "[resolution](mine/resolution.png)",
        "## The task",
        "## Are the differences significant?",
        "<summary>Every seed</summary>",
        "<summary>Training runs</summary>",
        "## How this report was made",
        "  depth: 4",
        "[mine.json](mine.json)",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    samples = [line for line in text.splitlines() if "/sample-" in line]
    assert [line.count("mine/sample-") for line in samples] == [4, 2]  # four per line
    assert {line.count("|") for line in samples} == {5}


def test_what_is_not_there_is_left_out():
    text = render_markdown(make_comparison(["liere8"], seeds=1), Pictures(), {})
    assert "## Are the differences significant?" not in text
    assert "## The task" not in text
    assert "attend" not in text
    assert "overview" not in text
