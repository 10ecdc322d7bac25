from __future__ import annotations

import importlib.util
import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(example, capsys):
    if example.name.startswith("timm_") and importlib.util.find_spec("timm") is None:
        pytest.skip("timm is not installed")
    runpy.run_path(str(example), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed
    if example.name in ("train_video.py", "volumes.py", "point_cloud.py"):
        assert float(re.findall(r"accuracy after .*: ([\d.]+)", printed)[0]) > 0.9
    if example.name == "timm_finetune.py":
        before, after = map(float, re.findall(r"accuracy ([\d.]+)", printed))
        assert after > before > 0.7
