"""Import the project's tools in their tests."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

__all__ = ["TOOLS", "import_tool"]

TOOLS = Path(__file__).parents[1] / "tools"


def import_tool(name: str) -> Any:
    """Return a module of `tools`; skip the tests if its file is missing, and fail if it cannot be imported."""
    if not (TOOLS / f"{name}.py").exists():
        pytest.skip(f"tools/{name}.py is not available", allow_module_level=True)
    return importlib.import_module(f"tools.{name}")
