"""The picture of the layers is drawn from the contract that import-linter enforces."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tests.own_tools import import_tool

tool = import_tool("draw_layers")

CONTRACT = '[[tool.importlinter.contracts]]\ntype = "layers"\nlayers = ["a | b", "c : d", "e"]\n'


def test_rows_are_those_of_the_contract():
    assert tool.read_layers(CONTRACT) == [(["a", "b"], False), (["c", "d"], True), (["e"], False)]


def test_the_committed_picture_is_that_of_the_contract():
    layers = tool.read_layers((tool.ROOT / "pyproject.toml").read_text())
    assert tool.PICTURE.read_text() == tool.draw(layers), "run python tools/draw_layers.py"


def test_every_module_has_a_box_and_a_description_that_fits():
    layers = tool.read_layers((tool.ROOT / "pyproject.toml").read_text())
    assert {module for modules, _ in layers for module in modules} == set(tool.MODULES)
    root = ElementTree.fromstring(tool.draw(layers))
    boxes = [node for node in root if node.tag.endswith("rect")]
    texts = [node for node in root if node.tag.endswith("text")]
    for text in texts:
        around = [box for box in boxes if _is_inside(text, box)]
        assert len(around) == 1, text.text
        letter = 0.6 if text.get("font-family") == "monospace" else 0.55  # em, on average
        width = letter * float(text.get("font-size")) * len(text.text)
        assert float(text.get("x")) + width <= float(around[0].get("x")) + float(around[0].get("width")), text.text


def test_a_module_without_a_description_is_named():
    with pytest.raises(ValueError, match=re.escape("describe a, b in MODULES")):
        tool.draw([(["a", "cli"], True), (["b"], False)])


def _is_inside(text, box) -> bool:
    x, y = float(text.get("x")), float(text.get("y"))
    left, top = float(box.get("x")), float(box.get("y"))
    return left <= x <= left + float(box.get("width")) and top <= y <= top + float(box.get("height"))
