from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from liere.optional.extras import explain_missing, require

ROOT = Path(__file__).parents[2]
ALL = (
    "yaml",
    "pydantic",
    "lightning",
    "filelock",
    "safetensors",
    "scipy",
    "tensorboard",
    "torchvision",
    "matplotlib",
    "av",
)
RECIPE = ROOT / "experiments" / "recipes" / "small" / "cifar10.yaml"
COMMANDS = (
    "demo --quick",
    f"train --config {RECIPE}",
    f"train --config {RECIPE} --model.dim 8",
    "train --resume run",
    f"compare --config {RECIPE}",
    "eval run",
    "report run",
    "data preview spatial --count 1",
    "data preview images --root nowhere",
    "reproduce main --scale small --dry-run",
    "bench rotations --quick",
    "inspect vit_tiny --depth 1",
)
CODE = """
import sys, warnings
warnings.simplefilter("ignore")
for name in sys.argv[1].split(","):
    sys.modules[name] = None
from liere.cli import main
for command in sys.argv[2:]:
    try:
        code = main(command.split())
    except SystemExit as error:
        code = error.code
    print(code, file=sys.stderr)
"""


@pytest.mark.parametrize("missing", [ALL, ("yaml",)], ids=["all", "yaml"])
def test_every_command_names_what_is_missing_and_how_to_install_it(tmp_path, missing):
    commands = (
        COMMANDS
        if len(missing) > 1
        else [one for one in COMMANDS if one.split()[0] not in ("bench", "inspect", "data")]
    )
    done = subprocess.run(
        [sys.executable, "-c", CODE, ",".join(missing), *commands],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stderr.splitlines()
    assert len(lines) == 2 * len(commands), done.stderr
    for command, line, code in zip(commands, lines[::2], lines[1::2], strict=True):
        assert code == "2", command
        assert line.startswith("liere: error: "), (command, line)
        assert ": pip install 'liere[" in line, (command, line)


def test_what_is_missing_is_told_before_it_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ImportError, match=r"^tensorboard is not installed: pip install 'liere\[train\]'$"):
        require("torch", "tensorboard")


@pytest.mark.parametrize(
    ("name", "extra"), [("yaml", "train"), ("PIL.Image", "train"), ("matplotlib.figure", "plot"), ("av", "video")]
)
def test_packages_have_their_extras(name, extra):
    assert f"pip install 'liere[{extra}]'" in explain_missing(ModuleNotFoundError("no", name=name))


def test_other_errors_of_imports_say_what_they_say():
    assert explain_missing(ImportError("cannot import name 'x'")) == "cannot import name 'x'"
    assert "pip" not in explain_missing(ModuleNotFoundError("No module named 'liere.nothing'", name="liere.nothing"))
