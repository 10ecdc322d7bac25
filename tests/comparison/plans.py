"""Plans of tiny runs, and runs that fail."""

from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")
import yaml

from liere.comparison.plan import make_plan
from liere.runs.run import create_run
from tests.training.tiny import CONFIG

__all__ = ["plan", "spoil"]


def plan(folder, encodings=("none",), seeds=(0,), **options):
    content = yaml.safe_load(options.pop("text", CONFIG))
    defaults = {"sizes": None, "examples": None, "slots": 1, "source": "tiny.yaml"}
    overrides = options.pop("overrides", {})
    return make_plan(content, overrides, encodings=encodings, seeds=seeds, folder=folder, **(defaults | options))


def spoil(planned):
    """Start a run in such a way that it fails in its process, and return the last line of its log."""
    run = create_run(planned.folder, planned.config)
    run.checkpoints.rmdir()
    run.checkpoints.symlink_to(run.folder.parent.absolute())
    return f"error: {run.checkpoints} is a link, but a run may only write to its own folder: delete it"
