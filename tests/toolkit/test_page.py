"""The page on the toolkit: every name and argument that it mentions exists."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

pytest.importorskip("tests.training.requirements")
from liere import toolkit
from liere.comparison.result import ComparisonResult
from liere.evaluation.scores import Scores
from tests.comparison.test_result import result  # noqa: F401  (a fixture)
from tests.evaluation.test_scores import MORE

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "from-python.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the page is not available")


def test_calls_have_arguments_that_the_functions_take():
    blocks = re.findall(r"^```py\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    calls = [
        node
        for block in blocks
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("toolkit.")
    ]
    assert {call.func.attr for call in calls} >= {"train", "evaluate", "predict", "compare", "reproduce"}
    for call in calls:
        signature = inspect.signature(getattr(toolkit, call.func.attr))
        signature.bind(*call.args, **{keyword.arg: keyword.value for keyword in call.keywords})


def columns(title: str) -> list[str]:
    """Return the names in the first column of the table below a title."""
    table = PAGE.read_text().split(f"One row of `{title}`")[1].split("\n\n")[1]
    return [name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])]


def test_rows_have_the_columns_that_are_explained(result):  # noqa: F811
    assert columns("compare(...).table()") == list(result.table(pandas=False)[0])
    assert columns("evaluate(...).table()") == list(Scores(MORE).table(pandas=False)[0])


def test_what_functions_return_has_what_is_named():
    for line in PAGE.read_text().split("| function | command | returns |")[1].split("\n\n")[0].splitlines()[2:]:
        functions, _, returned = line.strip("| ").split(" | ")
        for name in re.findall(r"`(\w+)`", functions):
            assert callable(getattr(toolkit, name))
            returns = inspect.signature(getattr(toolkit, name)).return_annotation
            for cls in re.findall(r"`([A-Z]\w+)`", returned):
                assert cls in returns
    for cls, names in ((ComparisonResult, ("table", "report", "page")), (toolkit.Made, ("claims", "numbers", "page"))):
        assert all(hasattr(cls, name) for name in names)
