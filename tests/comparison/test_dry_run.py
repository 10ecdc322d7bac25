"""What a comparison would do."""

from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")
from liere.cli import main
from liere.comparison.dry_run import describe_plan
from tests.comparison.executors.fakes import FakeExecutor
from tests.comparison.plans import plan
from tests.evaluation.test_summary import pretend
from tests.training.tiny import write_config


def test_runs_their_cost_and_their_executor_are_told(tmp_path):
    made = plan(tmp_path, ["none"], [0, 1, 2], examples=200, executor=FakeExecutor())
    pretend(made.runs[0].folder, "none", 0, 0.5, sizes=(36,))
    lines = describe_plan(made)
    assert lines[0] == f"{tmp_path}: 1 of 3 runs finished"
    assert [line.partition(",")[0] for line in lines[1:3]] == ["  none-seed1: to train", "  none-seed2: to train"]
    assert lines[3].startswith("2 runs to train, ")
    assert lines[4:] == ["2 runs by a fake"]


def test_the_script_for_slurm_is_shown_and_nothing_is_created(tmp_path, capsys, monkeypatch):
    pytest.importorskip("submitit")
    monkeypatch.setattr("liere.comparison.executors.slurm.check_not_memory", lambda folder: None)  # like many /tmp
    command = f"compare --config {write_config(tmp_path)} --encodings none liere8 --seeds 0 1 --out {tmp_path / 'out'}"
    assert main([*command.split(), "--executor", "slurm", "--partition", "gpu", "--jobs", "3", "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"{tmp_path / 'out'}: 0 of 4 runs finished" in lines
    assert "#SBATCH --array=0-3%3" in lines
    assert "#SBATCH --partition=gpu" in lines
    assert not (tmp_path / "out").exists()
    assert main([*command.split(), "--dry-run"]) == 0
    assert not (tmp_path / "out").exists()
