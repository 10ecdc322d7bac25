from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from liere.optional.torchvision_ops import repair_torchvision

CODE = """
from liere.optional import torchvision_ops
for _ in range(3):
    torchvision_ops.repair_torchvision()
import torch, torchvision
assert hasattr(torch.ops.torchvision, "nms")
if torchvision_ops._libraries:  # a torchvision that works by itself may lack the others
    assert all(hasattr(torch.ops.torchvision, name) for name in torchvision_ops.OPERATORS)
assert len(torchvision_ops._libraries) <= 1
"""


def test_torchvision_imports_after_any_number_of_repairs():
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed")
    subprocess.run([sys.executable, "-W", "ignore", "-c", CODE], check=True)


def test_nothing_happens_without_torchvision(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    repair_torchvision()


def test_other_failures_are_not_hidden(monkeypatch, tmp_path):
    (tmp_path / "torchvision.py").write_text("raise RuntimeError('something else')")
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RuntimeError, match="something else"):
        repair_torchvision()
