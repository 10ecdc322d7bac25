"""Tests mirror the source: the tests of a module are at the same place below `tests`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "liere"
SHORT = 40  # lines: smaller modules may be tested through the modules that use them
MODULES = [
    path.relative_to(SOURCE)
    for path in sorted(SOURCE.rglob("*.py"))
    if len(path.read_text().splitlines()) > SHORT and path.name != "__init__.py"
]


def is_named(module: str, text: str) -> bool:
    """Return whether a text names a module, with dots or as an import from its package."""
    package, _, name = module.rpartition(".")
    imported = rf"from {re.escape(package)} import (\([^)]*\b{name}\b|.*\b{name}\b)"
    return re.search(rf"\b{re.escape(module)}\b", text) is not None or re.search(imported, text) is not None


def test_modules_are_recognized():
    assert is_named("liere.runs.run", "from liere.runs.run import Run")
    assert is_named("liere.bench.race", "from liere.bench import memory, race\n")
    assert is_named("liere.bench.race", "from liere.bench import (\n    memory,\n    race,\n)")
    assert not is_named("liere.runs.run", "from liere.runs.runner import Run\nfrom liere.runs import records\nrun = 1")


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_each_module_has_its_test_file_or_is_named_in_its_packages(module):
    folder = TESTS / module.parent
    if (folder / f"test_{module.stem}.py").exists():
        return
    name = ".".join(["liere", *module.with_suffix("").parts])
    files = sorted(folder.glob("*.py")) if folder != TESTS else sorted(TESTS.glob("test_*.py"))
    assert any(is_named(name, file.read_text()) for file in files if file != Path(__file__)), (
        f"no test file names {name}: write {(folder / f'test_{module.stem}.py').relative_to(TESTS.parent)}"
    )
