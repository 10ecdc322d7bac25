"""Optional dependencies, and the commands that install them."""

from __future__ import annotations

import importlib.util

__all__ = ["TRAINING", "explain_missing", "require"]

EXTRAS = {
    "matplotlib": "plot",
    "av": "video",
    "timm": "timm",
    "transformers": "transformers",
    "huggingface_hub": "hub",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "onnxscript": "onnx",
    "ray": "cluster",
    "submitit": "cluster",
}
"""The extra that installs a package; for all other packages it is `train`."""
NAMES = {"yaml": "PyYAML", "PIL": "Pillow", "av": "PyAV", "lightning": "Lightning", "ray": "Ray"}
TRAINING = (
    *("yaml", "pydantic", "lightning", "filelock", "safetensors", "scipy"),
    *("tensorboard", "torchvision", "PIL", "numpy"),
)
"""Packages that a training run needs."""


def explain_missing(error: ImportError, extra: str | None = None) -> str:
    """Return the message for an import error, with the command that installs the missing package.

    Args:
        error: The error.
        extra: The extra to install; without, the one that is known to install the package.

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
    extra = extra or EXTRAS.get(package, "train")
    return f"{NAMES.get(package, package)} is not installed: pip install 'liere[{extra}]'"


def require(*packages: str, extra: str | None = None) -> None:
    """Raise `ImportError`, with an installation command, if a package is missing, without importing any.

    Args:
        *packages: Their names.
        extra: The extra that installs them, where it is not the usual one of each package.

    Raises:
        ImportError: If one is missing.

    Example:
        >>> require("torch")
        >>> require("torch", "no_such_package")
        Traceback (most recent call last):
            ...
        ImportError: no_such_package is not installed: pip install 'liere[train]'
    """
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise ImportError(explain_missing(ModuleNotFoundError(name=package), extra))
