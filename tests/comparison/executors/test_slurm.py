"""Runs as jobs of submitit: on this machine, and of commands that behave like those of SLURM."""

from __future__ import annotations

import os
import signal

import pytest

pytest.importorskip("tests.training.requirements")
pytest.importorskip("submitit")
import torch
import yaml

from liere import toolkit
from liere.comparison.execution import run_plan
from liere.comparison.executors import slurm_job, slurm_session
from liere.comparison.executors.slurm import SlurmExecutor
from liere.data.torch_datasets import from_datasets
from liere.runs.config_file import parse_config
from liere.runs.run import open_run
from tests.comparison.executors import fake_slurm
from tests.comparison.executors.holders import holder_of
from tests.comparison.plans import plan, spoil
from tests.training.tiny import CONFIG, differences, make_run, quiet

LOCAL = SlurmExecutor(cluster="local")
SHORT = {"training.examples": "16"}


def test_the_script_says_what_was_asked_for(tmp_path):
    executor = SlurmExecutor(
        partition="gpu", time="8:00:00", account="vision", qos="high", options={"mem": "32G", "exclusive": True}
    )
    configs = [parse_config(yaml.safe_load(CONFIG) | {"hardware": {"threads": 4, "workers": 2}})] * 6
    script = executor.script(tmp_path, configs, 3)
    wanted = ("partition=gpu", "time=480", "account=vision", "qos=high", "mem=32G", "exclusive", "requeue")
    wanted += ("array=0-5%3", "cpus-per-task=6", "gpus-per-node=1", "ntasks-per-node=1", "nodes=1", "signal=USR2@120")
    lines = script.splitlines()
    for option in wanted:
        assert f"#SBATCH --{option}" in lines, script
    assert f"-u -m submitit.core._submit {tmp_path / 'slurm'}" in lines[-1]
    assert "gpus-per-node" not in SlurmExecutor(gpus_per_run=0).script(tmp_path, configs, 3)
    assert "#SBATCH --array=0-5%6" in SlurmExecutor().script(tmp_path, configs, None)
    assert list(tmp_path.iterdir()) == []


def test_without_slurm_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("liere.comparison.executors.slurm.check_not_memory", lambda folder: None)
    with pytest.raises(ValueError, match="needs the commands of SLURM, and srun is not found: run it on a login node"):
        SlurmExecutor().open(tmp_path / "out", None)


def test_without_slurm_nothing_is_created(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("liere.comparison.executors.slurm.check_not_memory", lambda folder: None)
    recipe = yaml.safe_load(CONFIG)
    with pytest.raises(ValueError, match="srun is not found"):
        toolkit.compare(recipe, encodings=["none"], seeds=[0], out=tmp_path / "out", executor=SlurmExecutor())
    assert not (tmp_path / "out").exists()


def test_a_dry_run_refuses_memory_of_this_machine_like_the_command_itself(tmp_path, monkeypatch):
    def refuse(folder):
        raise ValueError(f"--out {folder} is in memory")

    monkeypatch.setattr("liere.comparison.executors.slurm.check_not_memory", refuse)
    configs = [parse_config(yaml.safe_load(CONFIG))]
    with pytest.raises(ValueError, match="is in memory"):
        SlurmExecutor().describe(tmp_path, configs, None)
    assert LOCAL.describe(tmp_path, configs, 1) == [
        "Runs are jobs of submitit on this machine, without SLURM, one at a time."
    ]


def test_jobs_on_this_machine_get_data_and_an_error_does_not_stop_the_others(tmp_path):
    data = from_datasets(torch.utils.data.TensorDataset(torch.rand(40, 3, 24, 24), torch.arange(40) % 2))
    recipe = yaml.safe_load(CONFIG) | {"data": data.as_config()}
    spoil(plan(tmp_path, seeds=[1], overrides=SHORT, text=yaml.safe_dump(recipe)).runs[0])
    options = {"encodings": ["none"], "seeds": [0, 1], "overrides": SHORT, "out": tmp_path, "progress": False}
    message = r"1 of 2 runs failed: none-seed1 failed with exit code 1 \(error: .* is a link"
    with pytest.raises(toolkit.RunsFailedError, match=message):
        toolkit.compare(recipe, **options, executor=LOCAL, jobs=2)
    run = open_run(tmp_path / "runs" / "none-seed0")
    assert run.result()["examples"] == 16
    assert run.evaluations()[0]["examples"] == 4
    assert (tmp_path / "report.html").exists()
    assert not list(tmp_path.glob(".shared-*"))


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Commands that behave like those of SLURM."""
    folder = fake_slurm.install(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(slurm_session, "ASK_SECONDS", 1.0)
    monkeypatch.setattr(slurm_session, "LATE_SECONDS", 0.5)
    return folder


@pytest.mark.slow
@quiet
@pytest.mark.filterwarnings("ignore:The .srun. command is available")  # for the run that is trained alone
def test_a_job_whose_time_is_over_saves_is_requeued_and_ends_as_if_nothing_had_happened(tmp_path, slurm):
    fields = {"training.examples": "1600", "training.checkpoint_every": "1000", "training.validate_every": "1000"}
    options = {"executor": SlurmExecutor(gpus_per_run=0), "slots": 1, "seeds": [0, 1], "examples": 8}
    made = plan(tmp_path / "out", overrides=fields, **options)
    told, ended = [], []

    def preempt(running):
        for run in running:
            rows, pid = list(run.metric_rows()), holder_of(run)
            if not told and pid and rows and int(rows[-1]["step"]) > 10:
                os.kill(pid, signal.SIGUSR2)
                told.append(run.folder.name)

    run_plan(made, watch=preempt, ended=ended.append, failed=pytest.fail)
    assert len(ended) == 2
    (name,) = told
    assert len(list(slurm.glob("*.requeued"))) == 1
    log = (tmp_path / "out" / "runs" / f"{name}.log").read_text()
    assert "stopped by SIGUSR2" in log
    assert f"{name}: resuming after step" in log
    run = next(run for run in ended if run.folder.name == name)
    config = run.config
    alone = make_run(
        tmp_path / "alone",
        model__encoding="none",
        training__seed=config.training.seed,
        training__examples=1600,
        training__checkpoint_every=1000,
        training__validate_every=1000,
    )
    from liere.training.fit import train

    train(alone, say=print)
    assert differences(run, alone) == []


@pytest.mark.slow
def test_canceled_jobs_save_and_killed_ones_are_submitted_again(tmp_path, slurm, monkeypatch):
    monkeypatch.setattr(slurm_job, "GRACE", 1.0)
    fields = {"training.examples": "100_000"}
    made = plan(tmp_path / "out", executor=SlurmExecutor(gpus_per_run=0), slots=2, seeds=[0], overrides=fields)
    killed = []

    def kill_then_interrupt(running):
        for run in running:
            rows, pid = list(run.metric_rows()), holder_of(run)
            if pid is None or not rows or pid in killed:
                continue
            if not killed:
                killed.append(pid)
                os.kill(pid, signal.SIGKILL)
            elif "resuming after step" in made.runs[0].log_file.read_text():
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_plan(made, watch=kill_then_interrupt, ended=pytest.fail, failed=pytest.fail)
    assert "stopped by SIGTERM" in made.runs[0].log_file.read_text()
    assert len(list(slurm.glob("*.script"))) == 2
