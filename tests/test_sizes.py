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
    """Return the lines of each function, from `def` to its end, without its docstring.

    Docstrings are read apart from the code: `create_model` describes each of its options, and may take lines for it.
    """
    return [
        (node.name, node.end_lineno - node.lineno + 1 - docstring_lines(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def docstring_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    if ast.get_docstring(function) is None:
        return 0
    return function.body[0].end_lineno - function.body[0].lineno + 1


def test_lengths_are_counted_without_docstrings_and_of_methods_too():
    text = '@d\nclass A:\n    @d\n    def f(self):\n        """One.\n\n        Two.\n        """\n        return 1\n'
    assert function_lengths(ast.parse(text)) == [("f", 2)]
    assert function_lengths(ast.parse("def f(\n    x,\n):\n    y = 1\n\n    return y\n")) == [("f", 6)]


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
    assert not long, f"split by step, at most {LONGEST_FUNCTION} lines each: {long}"


def test_most_modules_are_short():
    typical = statistics.median(count for path, count in LINES.items() if path.name != "__init__.py")
    assert typical < MEDIAN_MODULE, f"half of the modules have more than {typical} lines"
