"""Data sets opened as from a configuration."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("yaml")
from liere.data.section import DataSection
from liere.runs.config_file import parse_config


def open_data(name: str = "spatial", **fields: Any) -> DataSection:
    """Return the checked configuration section of a data set."""
    return parse_config({"data": {"name": name, **fields}}).data
