"""Torchvision beside a torch that its compiled part was not built for.

Such a torchvision (a wheel from PyPI beside torch for CPUs) leaves out its compiled operators, then asks for two of
them and fails to import, and with it everything that needs its image transforms, such as timm.
"""

from __future__ import annotations

import importlib
import importlib.util

import torch

__all__ = ["repair_torchvision"]

OPERATORS = ("nms", "qnms")
SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"

_libraries: list[torch.library.Library] = []
"""Operators live as long as these."""


def repair_torchvision() -> None:
    """Make `import torchvision` work where only its compiled operators are missing.

    They are declared, not implemented: whoever calls one gets an error. Nothing happens where torchvision works or is
    not installed.
    """
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
