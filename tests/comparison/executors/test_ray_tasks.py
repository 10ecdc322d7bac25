"""Runs as tasks of Ray on this machine."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("tests.training.requirements")
pytest.importorskip("ray")
import ray
import yaml

from liere.comparison.execution import run_plan
from liere.comparison.executors import ray_tasks
from liere.comparison.executors.ray_tasks import RayExecutor
from liere.runs.config_file import parse_config
from liere.runs.run import open_run
from tests.comparison.plans import plan, spoil
from tests.toolkit.shifted import Shifted
from tests.training.tiny import CONFIG

pytestmark = pytest.mark.xdist_group("ray")


@pytest.fixture(scope="module")
def ray_here():
    """Ray on this machine, for all tests of this file."""
    ray_tasks._connect("local")
    yield
    ray.shutdown()


def test_runs_are_executed_and_an_error_does_not_stop_the_others(tmp_path, ray_here):
    made = plan(
        tmp_path,
        [Shifted, "none"],
        executor=RayExecutor("local"),
        slots=None,
        examples=8,
        overrides={"training.examples": "16"},
    )
    reason = spoil(made.runs[1])
    ended, failed = [], []
    run_plan(made, watch=lambda running: None, ended=ended.append, failed=failed.append)
    assert [run.folder for run in ended] == [made.runs[0].folder]
    assert ended[0].result()["encoding_parameters"] == 1
    assert [record["examples"] for record in ended[0].evaluations()] == [8]
    log = made.runs[1].log_file.absolute()
    assert failed == [f"none-seed0 failed with exit code 1 ({reason}): see {log}"]
    assert "36 px: accuracy" in made.runs[0].log_file.read_text()
    assert not list(tmp_path.glob(".shared-*"))


def test_a_machine_that_does_not_see_the_folder_is_told_before_anything_is_submitted(tmp_path, ray_here, monkeypatch):
    monkeypatch.setattr("liere.comparison.executors.storage.PATIENCE", 0.0)
    (tmp_path / "out").mkdir()
    descriptor = os.open(tmp_path / "out", os.O_RDONLY)
    try:
        elsewhere = plan(tmp_path)  # the path of an open folder has a meaning in this process only
        made = type(elsewhere)(
            type(tmp_path)(f"/proc/self/fd/{descriptor}"), elsewhere.runs, None, RayExecutor("local")
        )
        with pytest.raises(ValueError, match=r"--out /proc/self/fd/\d+ is not the same folder on .* as here, but "):
            run_plan(made, watch=pytest.fail, ended=pytest.fail, failed=pytest.fail)
    finally:
        os.close(descriptor)
    assert list((tmp_path / "out").iterdir()) == []


def test_without_a_cluster_it_says_how_to_start_one(tmp_path, monkeypatch):
    def refuse(address, **_):
        raise ConnectionError("Could not find any running Ray instance. Please specify\nmore")

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(
        ValueError,
        match=r"no Ray cluster can be reached at --address auto \(Could not .*\): start one with `ray start --head`",
    ):
        ray_tasks._connect("auto")


@pytest.mark.parametrize(
    ("hardware", "options", "has_gpus", "needs"),
    [
        ({}, {}, False, "1 CPU"),
        ({}, {}, True, "1 CPU and 1 GPU"),
        ({"accelerator": "cpu", "threads": 4, "workers": 2}, {}, True, "6 CPUs"),
        ({"accelerator": "gpu"}, {"gpus_per_run": 0.5, "cpus_per_run": 3}, False, "3 CPUs and 0.5 GPU"),
        ({"accelerator": "gpu"}, {"gpus_per_run": 2}, True, "1 CPU and 2 GPUs"),
    ],
)
def test_a_run_asks_for_what_it_uses(hardware, options, has_gpus, needs):
    config = parse_config(yaml.safe_load(CONFIG) | {"hardware": hardware})
    assert str(RayExecutor(**options).resources(config, has_gpus=has_gpus)) == needs


def test_a_run_that_needs_a_gpu_gets_one():
    config = parse_config(yaml.safe_load(CONFIG) | {"hardware": {"accelerator": "gpu"}})
    with pytest.raises(ValueError, match=r"--gpus-per-run is 0, but hardware\.accelerator is gpu"):
        RayExecutor(gpus_per_run=0).resources(config, has_gpus=True)


def test_a_dry_run_tells_what_is_asked_for(tmp_path):
    config = parse_config(yaml.safe_load(CONFIG))
    (line,) = RayExecutor("auto").describe(tmp_path, [config], 3)
    assert line.startswith("Runs are tasks of the Ray cluster at auto, with 1 CPU each, at most 3 at a time;")


@pytest.mark.slow
def test_canceled_runs_save_and_stop(tmp_path, ray_here):
    made = plan(tmp_path, executor=RayExecutor("local"), slots=None, overrides={"training.examples": "1_000_000"})

    def interrupt(running):
        if running and any(running[0].metric_rows()):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_plan(made, watch=interrupt, ended=pytest.fail, failed=pytest.fail)
    assert "stopped by SIGINT" in made.runs[0].log_file.read_text()
    run = open_run(made.runs[0].folder)
    assert (run.checkpoints / "last.ckpt").exists()
