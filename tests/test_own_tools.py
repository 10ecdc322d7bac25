"""Tests are skipped if a part of the project is missing, and fail if it is broken."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from tests import own_tools
from tests.own_tools import import_tool

TESTS = Path(__file__).parent
OWN = ("liere", "liere_command", "tests", "tools", "examples")
REQUIREMENTS = "tests.training.requirements"  # checks for packages without importing them


def skipped_modules(file: Path) -> set[str]:
    """Return the modules without which a test file skips itself."""
    calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    return {
        call.args[0].value
        for call in calls
        if ast.unparse(call.func).endswith("importorskip") and isinstance(call.args[0], ast.Constant)
    }


def test_no_module_of_the_project_may_be_missing_unnoticed():
    found = {
        f"{file.relative_to(TESTS)}: {module}"
        for file in sorted(TESTS.rglob("*.py"))
        for module in skipped_modules(file)
        if module.partition(".")[0] in OWN and module != REQUIREMENTS
    }
    assert not found, "import them, or use tests.own_tools.import_tool"


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Provide an empty folder of tools."""
    (tmp_path / "tools").mkdir()
    monkeypatch.setattr(own_tools, "TOOLS", tmp_path / "tools")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tools"]:
        monkeypatch.delitem(sys.modules, name)
    yield tmp_path / "tools"
    for name in [name for name in sys.modules if name.partition(".")[0] == "tools"]:
        del sys.modules[name]


def test_a_tool_is_imported(tools):
    (tools / "fine.py").write_text("value = 3")
    assert import_tool("fine").value == 3


def test_a_missing_tool_skips(tools):
    with pytest.raises(pytest.skip.Exception, match=r"tools/none\.py is not available"):
        import_tool("none")


def test_a_broken_tool_fails(tools):
    (tools / "broken.py").write_text("import nothing_of_this_name")
    with pytest.raises(ModuleNotFoundError, match="nothing_of_this_name"):
        import_tool("broken")
