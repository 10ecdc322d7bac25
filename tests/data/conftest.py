"""Data sets in files that tests of several folders read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def imagenet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three classes in folders as ImageNet has them; not to be changed."""
    from tests.data.file_archives import write_imagenet

    return write_imagenet(tmp_path_factory.mktemp("images") / "imagenet")


@pytest.fixture
def imagenet_copy(imagenet: Path, tmp_path: Path) -> Path:
    """A copy that may be damaged."""
    shutil.copytree(imagenet, tmp_path / "imagenet")
    return tmp_path / "imagenet"
