"""docs/how-to/timm.md: its code runs, and its table is the list of the models that are tested."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.integrations.timm.families import FAMILIES

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "timm.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the pages are not beside the tests")


def test_code_runs(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)):
        exec(compile(block, f"{PAGE.name}, block {number}", "exec"), names)
    assert capsys.readouterr().out == "True\n"


def test_the_table_lists_the_models_that_are_tested():
    rows = [f"| {family.label} | `{family.name}` {family.variant} | {family.rope or ''} |" for family in FAMILIES]
    table = "\n".join(re.sub(" +", " ", row) for row in rows)
    assert table in PAGE.read_text()
