"""Plans of tiny runs."""

from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")
import yaml

from liere.comparison.plan import make_plan
from tests.training.tiny import CONFIG

__all__ = ["plan"]


def plan(folder, encodings=("none",), seeds=(0,), **options):
    content = yaml.safe_load(options.pop("text", CONFIG))
    defaults = {"sizes": None, "examples": None, "slots": 1, "source": "tiny.yaml"}
    overrides = options.pop("overrides", {})
    return make_plan(content, overrides, encodings=encodings, seeds=seeds, folder=folder, **(defaults | options))
