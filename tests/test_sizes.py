"""One idea per file: modules and functions stay short enough to be read at once."""

from __future__ import annotations

import ast
import statistics
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
LINES = {path.relative_to(SOURCE): len(path.read_text().splitlines()) for path in sorted(SOURCE.rglob("*.py"))}
LONGEST_MODULE = 300
LONGEST_FUNCTION = 60
MEDIAN_MODULE = 120


def function_lengths(tree: ast.AST) -> list[tuple[str, int]]:
    """Return the lines of each function, its docstring included; decorators are not counted."""
    return [
        (node.name, node.end_lineno - node.lineno + 1)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_lengths_are_counted_with_docstrings_and_methods():
    text = 'class A:\n    def f(self):\n        """One.\n\n        Two.\n        """\n        return 1\n'
    assert function_lengths(ast.parse(text)) == [("f", 6)]


def test_no_module_is_long():
    long = {str(path): count for path, count in LINES.items() if count > LONGEST_MODULE}
    assert not long, f"split by idea, at most {LONGEST_MODULE} lines each: {long}"


def test_no_function_is_long():
    long = {
        f"{path}: {name}": count
        for path in LINES
        for name, count in function_lengths(ast.parse((SOURCE / path).read_text()))
        if count > LONGEST_FUNCTION
    }
    assert not long, f"split by step, or say it shorter, at most {LONGEST_FUNCTION} lines each: {long}"


def test_most_modules_are_short():
    typical = statistics.median(count for path, count in LINES.items() if path.name != "__init__.py")
    assert typical < MEDIAN_MODULE, f"half of the modules have more than {typical} lines"
