from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from liere.optional.torchvision_ops import import_with_torchvision

# A torchvision whose compiled part was not built for this torch: loading that part fails.
BROKEN = """
import importlib, sys, torch

def fail(path):
    raise OSError(f"undefined symbol in {path}")

torch.ops.load_library = fail
"""
BEFORE = """
try:
    importlib.import_module("torchvision")
except RuntimeError as error:
    print(error)
"""
AFTER = """
from liere.optional import torchvision_ops

print(hasattr(torch.ops.torchvision, "nms"))
for _ in range(3):
    transforms = torchvision_ops.import_with_torchvision("torchvision.transforms")
print(transforms.CenterCrop(2)(torch.zeros(3, 4, 4)).shape)
print([hasattr(torch.ops.torchvision, name) for name in torchvision_ops.OPERATORS])
print(len(torchvision_ops._libraries))
try:
    torch.ops.torchvision.nms(torch.zeros(1, 4), torch.zeros(1), 0.5)
except NotImplementedError as error:
    print("not implemented")
"""

needs_torchvision = pytest.mark.skipif(
    importlib.util.find_spec("torchvision") is None, reason="torchvision is not installed"
)


def run(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, text=True, capture_output=True)
    return done.stdout.splitlines()


@needs_torchvision
def test_without_its_compiled_operators_torchvision_cannot_be_imported_by_itself():
    (line,) = run(BROKEN + BEFORE)
    assert line.startswith("operator torchvision::nms does not exist")


@needs_torchvision
def test_it_is_imported_once_the_operators_are_declared_and_they_are_only_declared():
    assert run(BROKEN + AFTER) == ["False", "torch.Size([3, 2, 2])", "[True, True]", "1", "not implemented"]


@pytest.mark.slow
@needs_torchvision
def test_after_a_failed_import_it_is_repaired_too():
    assert run(BROKEN + BEFORE + AFTER)[1:] == run(BROKEN + AFTER)


@needs_torchvision
def test_packages_that_import_torchvision_work_beside_it():
    if importlib.util.find_spec("timm") is None:
        pytest.skip("timm is not installed")
    code = "from liere.optional.torchvision_ops import import_with_torchvision as load; print(load('timm').__name__)"
    assert run(BROKEN + code) == ["timm"]


def test_what_is_not_installed_is_an_import_error_with_and_without_torchvision(monkeypatch):
    with pytest.raises(ImportError, match="no_such_package"):
        import_with_torchvision("no_such_package")
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(ImportError, match="torchvision"):
        import_with_torchvision("torchvision")
    assert import_with_torchvision("json").__name__ == "json"


def test_other_failures_are_not_hidden(monkeypatch, tmp_path):
    (tmp_path / "torchvision.py").write_text("raise RuntimeError('something else')")
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RuntimeError, match="something else"):
        import_with_torchvision("torchvision")
