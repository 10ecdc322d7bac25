"""docs/how-to/transformers.md: its code runs, and its table is the list of the models that are tested."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.integrations.transformers.families import FAMILIES

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "transformers.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the pages are not beside the tests")


def test_code_runs(capsys):
    names: dict = {}
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)):
        exec(compile(block, f"{PAGE.name}, block {number}", "exec"), names)
    assert capsys.readouterr().out == "True\nTrue\n8\n"


def test_the_table_lists_the_models_that_are_tested():
    rows = [
        f"| {family.label} | `{family.id}` | {family.rope or ''} | `{family.auto or 'type(model)'}` |"
        for family in FAMILIES
    ]
    table = "\n".join(re.sub(" +", " ", row) for row in rows)
    assert table in PAGE.read_text()
