"""Skip test modules that import this if the packages for training are missing: `pytest.importorskip(__name__)`."""

from __future__ import annotations

import importlib.util

import pytest

PACKAGES = ("pydantic", "yaml", "lightning", "safetensors", "scipy", "tensorboard", "torchvision", "matplotlib")

for package in PACKAGES:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)
