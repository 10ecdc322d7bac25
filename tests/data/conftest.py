"""Data sets in files that are shared by tests in several folders."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def imagenet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three class folders in ImageNet's layout; must not be changed."""
    from tests.data.file_archives import write_imagenet

    return write_imagenet(tmp_path_factory.mktemp("images") / "imagenet")


@pytest.fixture
def imagenet_copy(imagenet: Path, tmp_path: Path) -> Path:
    """A copy that may be damaged."""
    shutil.copytree(imagenet, tmp_path / "imagenet")
    return tmp_path / "imagenet"
