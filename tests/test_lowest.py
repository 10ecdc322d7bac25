from __future__ import annotations

import tomllib

import pytest

from tests.lowest import ROOT, constraints, floors


def test_every_requirement_has_a_lowest_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lowest = floors(project)
    assert lowest["torch"] == project["dependencies"][0].removeprefix("torch>=")
    assert {"lightning", "numpy", "scipy", "timm", "torchvision"} <= lowest.keys()
    assert "pytest" not in lowest


@pytest.mark.parametrize(
    ("extras", "message"),
    [
        ({"plot": ["matplotlib"]}, "requires 'matplotlib' without a lowest version"),
        ({"plot": ["torch>=2.8"]}, r"requires torch from 2\.7 and from 2\.8"),
    ],
)
def test_requirements_that_say_nothing_or_two_things_are_refused(extras, message):
    with pytest.raises(ValueError, match=message):
        floors({"name": "liere", "dependencies": ["torch>=2.7"], "optional-dependencies": extras})


def test_floors_replace_pins_and_other_pins_stay():
    pinned = "# tools\nPyYAML==6.0.3\npytest==9.2.0\n"
    assert constraints({"pyyaml": "6"}, pinned) == ["pyyaml==6", "pytest==9.2.0"]
