"""Importing the toolkit is cheap."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("tests.training.requirements")


def test_importing_the_library_does_not_import_the_toolkit():
    code = "import sys, liere; assert not {'liere.toolkit', 'lightning', 'pydantic'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import sys; from liere import toolkit; assert not {'lightning', 'matplotlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
