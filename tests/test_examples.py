from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(example, capsys):
    runpy.run_path(str(example), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed
    if example.name == "train_video.py":
        assert float(re.findall(r"accuracy .*: ([\d.]+)", printed)[0]) > 0.9
