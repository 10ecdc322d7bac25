"""Results that are kept with the project: tables are rebuilt from their runs, without data and without training."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("tests.training.requirements")

from liere.cli import main
from liere.files.shipped import experiments_folder
from liere.reproduce.catalog import CATALOGUE

KEPT = experiments_folder().parent / "results" / "reproduce" / "small"
NAMES = [name for name in CATALOGUE if (KEPT / f"{name}.json").exists() and not CATALOGUE[name].needs_weights]

pytestmark = pytest.mark.skipif(not NAMES, reason="the results are not beside the tests")


def test_the_main_tables_are_there():
    assert {"main", "loss", "significance", "shuffling", "compute", "flops"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_rebuilt_from_the_runs_that_are_kept(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", name, "--scale", "small"]) == 0
    printed = capsys.readouterr().out
    kept = json.loads((KEPT / f"{name}.json").read_text())
    made = json.loads((tmp_path / "liere-reproduce" / "small" / f"{name}.json").read_text())
    runs = len(kept["runs"])
    if CATALOGUE[name].experiment:
        assert f"{name}: {runs} of {runs} runs are finished" in printed
    for field in ("title", "paper", "numbers", "claims", "notes", "runs", "seconds"):
        assert made[field] == kept[field], field
    assert kept["command"] == f"liere reproduce {name} --scale small"
    assert not (tmp_path / "liere-reproduce" / "small" / "runs").exists()


def test_runs_are_kept_without_weights_and_none_is_superfluous():
    used = {run["name"] for name in NAMES for run in json.loads((KEPT / f"{name}.json").read_text())["runs"]}
    assert {path.name for path in (KEPT / "runs").iterdir()} == used
    assert not [path for path in KEPT.rglob("*") if path.suffix in (".safetensors", ".ckpt")]
