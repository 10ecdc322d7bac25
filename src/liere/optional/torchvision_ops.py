"""Torchvision, and what imports it, beside a torch that its compiled part was not built for.

Such a torchvision (a wheel from PyPI beside torch for CPUs) leaves out its compiled operators, then asks for two of
them and fails to import, and with it everything that needs its image transforms, such as timm.
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
"""Operators live as long as these."""


def import_with_torchvision(name: str) -> ModuleType:
    """Return a module that needs torchvision: one of its own, or of timm or Lightning, which import it.

    Where only torchvision's compiled operators are missing they are declared, not implemented: whoever calls one gets
    an error.

    Raises:
        ImportError: If the module is not installed.
    """
    _repair_torchvision()
    return importlib.import_module(name)


def _repair_torchvision() -> None:
    """Make `import torchvision` work; nothing happens where it does, or is not installed."""
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
