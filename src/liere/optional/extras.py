"""Packages that are not installed with `liere` itself, and the command that installs them."""

from __future__ import annotations

import importlib.util

__all__ = ["TRAINING", "explain_missing", "require"]

EXTRAS = {
    "matplotlib": "plot",
    "av": "video",
    "timm": "timm",
    "huggingface_hub": "hub",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "onnxscript": "onnx",
}
"""The extra of a package; of all others it is `train`."""
NAMES = {"yaml": "PyYAML", "PIL": "Pillow", "av": "PyAV", "lightning": "Lightning"}
TRAINING = (
    *("yaml", "pydantic", "lightning", "filelock", "safetensors", "scipy"),
    *("tensorboard", "torchvision", "PIL", "numpy"),
)
"""What a run needs from its first step to its last."""


def explain_missing(error: ImportError) -> str:
    """Return what an error of an import says, with the command that installs what is missing.

    Example:
        >>> explain_missing(ModuleNotFoundError("No module named 'yaml'", name="yaml"))
        "PyYAML is not installed: pip install 'liere[train]'"
        >>> explain_missing(ImportError("videos need PyAV: pip install 'liere[video]'"))
        "videos need PyAV: pip install 'liere[video]'"
    """
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return str(error)
    package = error.name.partition(".")[0]
    if package == "liere":
        return str(error)
    return f"{NAMES.get(package, package)} is not installed: pip install 'liere[{EXTRAS.get(package, 'train')}]'"


def require(*packages: str) -> None:
    """Raise `ImportError`, with the command that installs it, for a package that is missing; nothing is imported.

    Example:
        >>> require("torch")
        >>> require("torch", "no_such_package")
        Traceback (most recent call last):
            ...
        ImportError: no_such_package is not installed: pip install 'liere[train]'
    """
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise ImportError(explain_missing(ModuleNotFoundError(name=package)))
