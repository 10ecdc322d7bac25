"""The layers are respected, and `make lint` reports violations."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("importlinter")

ROOT = Path(__file__).parents[1]
LAYERS = "Layers: a module imports only from layers below its own"
INDEPENDENT = "Training and evaluation do not know each other, not even through others"
ACYCLIC = "No cycles between files or packages"
CORE = "The core needs torch alone: no toolkit below the data sets"
BEFORE_TORCH = "What runs before torch is imported imports neither torch nor liere"
CALL = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run what `make lint` runs, on a copy of the project."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder / "src"), *sys.path]), "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-c", CALL, "--no-cache"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def broken(done: subprocess.CompletedProcess[str]) -> set[str]:
    """Return the contracts that the output reports as broken."""
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    return {line.removesuffix(" BROKEN") for line in lines if line.endswith(" BROKEN")}


@pytest.fixture
def project(tmp_path):
    """A copy of the source and of the contracts."""
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "experiments")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def add_line(project: Path, module: str, text: str) -> None:
    with (project / "src" / "liere" / module).open("a") as file:
        file.write(f"\n\n{text}\n")


def test_the_layers_hold_and_the_contracts_are_listed():
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout
    for contract in (LAYERS, INDEPENDENT, ACYCLIC, CORE, BEFORE_TORCH):
        assert f"{contract} KEPT" in done.stdout


AT_THE_TOP = "from {} import {}"
LAZY = "def later():\n    from {} import {}"
FOR_TYPES = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from {} import {}"


@pytest.mark.parametrize("how", [AT_THE_TOP, LAZY, FOR_TYPES], ids=["at the top", "lazy", "for types"])
@pytest.mark.parametrize(
    ("module", "package", "name", "contracts"),
    [
        ("positions.py", "liere.vit", "VisionTransformer", {LAYERS}),
        ("runs/run.py", "liere.training.fit", "train", {LAYERS}),
        ("report/charts.py", "liere.reproduce", "catalog", {LAYERS}),
        ("evaluation/seeds.py", "liere.training", "muon", {LAYERS, INDEPENDENT}),
        ("evaluation/seeds.py", "liere.evaluation", "pairs", {ACYCLIC}),
        ("layers.py", "pydantic", "BaseModel", {CORE}),
    ],
)
def test_whoever_imports_upwards_is_told(project, how, module, package, name, contracts):
    add_line(project, module, how.format(package, name))
    done = lint(project)
    assert done.returncode == 1
    assert contracts <= broken(done)


def test_a_module_without_a_place_in_the_layers_is_told(project):
    (project / "src" / "liere" / "new_room.py").write_text('"""New."""\n')
    done = lint(project)
    assert done.returncode == 1
    assert "new_room" in done.stdout


def test_make_lint_asks():
    assert "lint-imports" in (ROOT / "Makefile").read_text().partition("\nlint:")[2].partition("\n\n")[0]
