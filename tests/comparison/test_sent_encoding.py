"""Encodings defined only in this process reach the processes of a comparison."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("tests.training.requirements")
from liere.cli import main
from liere.comparison.sent_encoding import send_encoding
from liere.encodings.registry import encoding_name
from liere.runs.run import open_run
from tests.toolkit.shifted import Shifted
from tests.training.tiny import CONFIG, quiet, write_config

pytestmark = quiet


NOTEBOOK = """
import sys
import torch, yaml
import liere
from liere import toolkit

AMOUNT = 2.0

class Mine(liere.PositionEncoding):
    def __init__(self, amount):
        super().__init__()
        self.amount = torch.nn.Parameter(torch.tensor(amount))

    @classmethod
    def build(cls, shape):
        return cls(AMOUNT)

    def embed(self, tokens, positions, grid):
        return tokens + self.amount

recipe = yaml.safe_load(open("tiny.yaml"))
result = toolkit.compare(recipe, encodings=[Mine, "none"], seeds=[0], examples=8, out="out", progress=False)
print([row["encoding"] for row in result.table(pandas=False)])
"""


@pytest.fixture
def notebook(tmp_path):
    """Execute code as a notebook would: in `__main__`, without a file that could be imported."""
    write_config(tmp_path, CONFIG.replace("examples: 72", "examples: 16"))

    def call(code: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", textwrap.dedent(code)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    return call


def test_a_class_of_a_notebook_takes_part(notebook, tmp_path, capsys):
    pytest.importorskip("cloudpickle")
    done = notebook(NOTEBOOK)
    assert done.stdout == "['__main__:Mine', 'none']\n", done.stderr
    run = tmp_path / "out" / "runs" / "__main__-Mine-seed0"
    assert open_run(run).result()["encoding_parameters"] == 1
    assert main(["eval", str(run)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "encoding '__main__:Mine' was defined in a script, notebook or function: define or import Mine here" in error


def test_without_cloudpickle_it_is_told_before_anything_runs(notebook, tmp_path):
    done = notebook("import sys\nsys.modules['cloudpickle'] = None\n" + NOTEBOOK)
    assert "ImportError: encoding '__main__:Mine' is defined in a script or notebook" in done.stderr
    assert "pip install cloudpickle, or move the class to a module" in done.stderr
    assert not list((tmp_path / "out").rglob("config.yaml"))


def test_what_every_process_has_is_not_sent():
    assert send_encoding("liere8") is None
    sent = send_encoding(encoding_name(Shifted))
    assert sent is not None
    assert len(sent.content) < 100  # a reference, not its code
    assert not sent.is_registered
