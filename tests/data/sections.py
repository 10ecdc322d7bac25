"""Data sets as configurations open them."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("yaml")
from liere.data.section import DataSection
from liere.runs.config_file import parse_config


def open_data(name: str = "spatial", **fields: Any) -> DataSection:
    """Return the section of a data set, checked as that of a configuration."""
    return parse_config({"data": {"name": name, **fields}}).data
