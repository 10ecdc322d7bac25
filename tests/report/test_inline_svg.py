from __future__ import annotations

from xml.etree import ElementTree

import pytest

pytest.importorskip("matplotlib")

from liere.report.drawing import INK, sheet
from liere.report.inline_svg import inline_svg


@pytest.fixture
def drawn():
    with sheet(1, 1, cell=(3, 2)) as (figure, axes):
        axes[0, 0].plot([0, 1], [0, 2], color="#123456", marker="o", ms=5)
        axes[0, 0].set_title("A title", color=INK)
        return inline_svg(figure, "mine", "What it shows")


def test_text_is_text_and_the_pages_colors_rule_it(drawn):
    root = ElementTree.fromstring(drawn)
    (title,) = [text for text in root.iter("text") if text.text == "A title"]
    assert "fill: var(--ink)" in title.get("style")
    assert "font-family: inherit" in title.get("style")
    assert INK not in drawn
    assert "stroke: #123456" in drawn  # colors of encodings stay
    assert len([mark for mark in root.iter("use") if "fill: #123456" in (mark.get("style") or "")]) == 2


def test_ids_are_the_figures_own_and_references_follow(drawn):
    root = ElementTree.fromstring(drawn)
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert ids
    assert all(name.startswith("mine-") for name in ids)
    used = {element.get("href").lstrip("#") for element in root.iter("use")}
    clipped = {e.get("clip-path")[5:-1] for e in root.iter() if e.get("clip-path")}
    assert used
    assert clipped
    assert used | clipped <= set(ids)


def test_it_is_an_image_with_a_name_that_scales_and_rules_nothing_else(drawn):
    root = ElementTree.fromstring(drawn)
    assert root.get("role") == "img"
    assert root.get("aria-label") == "What it shows"
    assert root.get("width") is root.get("height") is None
    assert [float(number) for number in root.get("viewBox").split()] == [0, 0, 3 * 72, 2 * 72]
    assert "<style" not in drawn
    assert "<metadata" not in drawn
