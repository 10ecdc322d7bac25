"""The tutorial on reports quotes a committed report."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import DOCS, ROOT, one_line

PAGE = DOCS / "tutorials" / "read-a-report.md"
REPORT = ROOT / "results" / "placement.md"

pytestmark = pytest.mark.skipif(not PAGE.exists() or not REPORT.exists(), reason="the pages are not beside the tests")


def rows(text: str) -> list[list[str]]:
    """Return the cells of all rows of tables, without bold type and escapes."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip(" *\\").replace("\\", "") for cell in line.strip("|").split("|")] for line in lines]


def test_the_headline_is_that_of_the_report():
    quoted = " ".join(re.findall(r"^> (.*)$", PAGE.read_text(), flags=re.MULTILINE))
    assert f"**{quoted}**" in REPORT.read_text()


def test_rows_of_pairs_are_those_of_the_report():
    tables = REPORT.read_text().split("differences at 372 px:")[1].split("differences at 276 px:")[0]
    quoted = [row for row in rows(PAGE.read_text()) if len(row) == 6]
    assert len(quoted) == 4  # with the header
    assert all(row in rows(tables) for row in quoted)


def test_rows_of_encodings_are_those_of_the_report():
    main = {row[0]: row for row in rows(REPORT.read_text()) if len(row) == 11 and row[0] not in ("encoding", "---")}
    quoted = [row for row in rows(PAGE.read_text()) if len(row) == 5][1:]
    assert [row[0] for row in quoted] == list(main)
    for name, trained, largest, examples, parameters in quoted:
        assert [trained, largest, examples, parameters] == [main[name][place] for place in (1, 4, 8, 10)]


def test_the_seeds_of_the_recomputed_pair_are_those_of_the_report():
    found = {row[0]: row for row in rows(REPORT.read_text()) if row[1:2] == ["372 px"]}
    code = re.search(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)[1]
    for variable, name in {"rope_mixed": "RoPE-Mixed", "dense": "LieRE (dense)"}.items():
        values = re.search(rf"^{variable} = \[(.*)\]$", code, flags=re.MULTILINE)[1]
        assert [f"{100 * float(value):.1f}" for value in values.split(",")] == found[name][2:12]
    assert "p = 0.266" in one_line(PAGE)
