"""What the package imports is declared in pyproject.toml, what is declared is used, and all of it is pinned."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
if not (ROOT / "src").is_dir() or not (ROOT / "constraints.txt").is_file():
    pytest.skip("the sources are not beside the tests", allow_module_level=True)

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OWN = {"liere", "liere_command"}
IMPORTERS = {"import_module", "import_with_torchvision"}
"""Functions that import what their first argument names."""
NOT_FOR_USERS = {"jaxtyping"}
"""Imported where types are checked, and then only if they are there."""
USED_IF_THERE = {"pandas", "pytorch-lightning"}
"""What users may have: tables become data frames, and loggers of the older package are taken, too."""
NOT_IMPORTED = {
    "onnx": "torch.onnx.export",
    "onnxruntime": "exported models",
    "onnxscript": "torch.onnx.export",
    "tensorboard": "the logger of Lightning",
}
"""What is needed by somebody else's code, and what for."""


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names_of(lines: list[str]) -> set[str]:
    return {canonical(re.match(r"[\w.-]+", line)[0]) for line in lines} - {"liere"}


def modules_in(tree: ast.AST) -> set[str]:
    """Return the top-level names of all modules that code imports, wherever in it."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            found |= {node.args[0].value} if name in IMPORTERS else set()
    return {name.partition(".")[0] for name in found}


def imported() -> set[str]:
    """Return the packages that `src` imports, by the names that pip knows them by."""
    modules = set().union(*(modules_in(ast.parse(file.read_text())) for file in (ROOT / "src").rglob("*.py")))
    known = packages_distributions()
    return {
        canonical(known.get(name, [name])[0])
        for name in modules
        if name not in sys.stdlib_module_names and name not in OWN
    }


def declared(*, dev: bool) -> set[str]:
    extras = PROJECT["optional-dependencies"]
    lines = [line for name, lines in extras.items() if dev or name not in ("dev", "docs") for line in lines]
    return names_of([*PROJECT["dependencies"], *lines])


def test_all_kinds_of_imports_are_seen():
    code = "import a.b\ndef f():\n    from c.d import e\n    load('x')\n    lib.import_module('g.h')\nfrom . import i"
    assert modules_in(ast.parse(code)) == {"a", "c", "g"}


def test_what_is_imported_is_declared():
    assert imported() - declared(dev=False) == NOT_FOR_USERS | USED_IF_THERE
    assert declared(dev=True) >= NOT_FOR_USERS


def test_what_is_declared_is_imported_or_needed_by_others():
    assert declared(dev=False) - imported() == NOT_IMPORTED.keys()


def test_every_requirement_is_pinned_and_nothing_else_is():
    pins = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in pins)
    assert names_of(pins) == declared(dev=True)
