"""Import of torchvision, and of packages that need it, when its compiled operators do not match the installed torch.

Such a torchvision (for example a wheel built for CUDA next to torch for CPUs) cannot load its compiled operators, then
refers to two of them and fails to import, and so does every package that needs its image transforms, such as timm.
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

import torch

__all__ = ["import_with_torchvision"]

OPERATORS = ("nms", "qnms")
SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"

_libraries: list[torch.library.Library] = []
"""Declared operators exist only as long as these."""


def import_with_torchvision(name: str) -> ModuleType:
    """Return a module that needs torchvision: one of its own modules, or one of timm or Lightning.

    If only torchvision's compiled operators are missing, they are declared but not implemented: calling one raises an
    error.

    Raises:
        ImportError: If the module is not installed.
    """
    _repair_torchvision()
    return importlib.import_module(name)


def _repair_torchvision() -> None:
    """Make `import torchvision` work, if it is installed and does not work already."""
    if importlib.util.find_spec("torchvision") is None:
        return
    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            raise
        _declare([name for name in OPERATORS if not hasattr(torch.ops.torchvision, name)])
        importlib.import_module("torchvision")


def _declare(names: list[str]) -> None:
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in names:
        library.define(name + SCHEMA)
    _libraries.append(library)
