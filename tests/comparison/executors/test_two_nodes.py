"""A comparison on two Ray nodes, one of which is killed: nothing is lost, and nothing is done twice."""

from __future__ import annotations

import os
import signal
import time

import pytest

pytest.importorskip("tests.training.requirements")
pytest.importorskip("ray")
import ray

from liere.comparison.execution import run_plan
from liere.comparison.executors.local import LocalExecutor
from liere.comparison.executors.ray_tasks import RayExecutor
from liere.runs.run import open_run
from tests.comparison.executors.holders import holder_of, parent_of
from tests.comparison.plans import plan
from tests.training.tiny import differences

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]

ENCODINGS, SEEDS = ["none", "liere8"], [0, 1, 2]
LONG = {"training.examples": "800"}  # 100 steps
LARGE = {"model.dim": "256", "model.depth": "4", "model.mlp_dim": "1024", "training.examples": "240"}
"""Checkpoints of tens of megabytes, so that writing one takes a while."""


@pytest.fixture
def cluster(monkeypatch):
    """Two nodes with one CPU each; the driver belongs to the first, the second can be killed."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_worker_niceness", "0")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    soon = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_failure_threshold": 3}
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "_system_config": soon})
    second = made.add_node(num_cpus=1)
    made.wait_for_nodes()
    yield made, second
    ray.shutdown()
    made.shutdown()


def execute(folder, executor, overrides, watch=lambda running: None):
    """Execute six runs, and return them by name and in the order in which they ended."""
    made = plan(folder, ENCODINGS, SEEDS, executor=executor, slots=None, examples=20, overrides=overrides)
    ended = []
    run_plan(made, watch=watch, ended=ended.append, failed=pytest.fail)
    return {run.folder.name: run for run in ended}


def check_same(ours, theirs):
    assert len(ours) == len(theirs) == 6
    for name, run in ours.items():
        assert differences(run, theirs[name]) == []
        steps = [row["step"] for row in run.metric_rows() if row["train_loss"]]
        assert len(steps) == len(set(steps))
        assert run.evaluations() == theirs[name].evaluations()
        for record in run.evaluations():
            assert run.predictions_file(record).read_bytes() == theirs[name].predictions_file(record).read_bytes()


class Killer:
    """Kills a node once `is_time` says so of a run on it; notes what was finished then."""

    def __init__(self, cluster, node, is_time):
        self.cluster, self.node, self.is_time = cluster, node, is_time
        self.raylet = node.all_processes["raylet"][0].process.pid
        self.victim, self.finished = None, {}

    def __call__(self, running):
        for run in running if self.victim is None else ():
            pid = holder_of(run)
            if pid is None or parent_of(pid) != self.raylet or run.result_file.exists():
                continue
            if self.is_time(run, pid):
                self.victim = run.folder.name
                folders = run.folder.parent.iterdir()
                results = [folder / "result.json" for folder in folders if (folder / "result.json").exists()]
                self.finished = {path: path.stat().st_mtime_ns for path in results}
                os.kill(pid, signal.SIGKILL)
                self.cluster.remove_node(self.node, allow_graceful=False)
                return

    def check(self, runs):
        assert self.victim is not None
        assert {path: path.stat().st_mtime_ns for path in self.finished} == self.finished
        log = runs[self.victim].folder.with_name(f"{self.victim}.log").read_text()
        assert "resuming after step" in log


def test_two_nodes_do_the_same_as_this_machine_and_the_death_of_one_changes_nothing(tmp_path, cluster):
    def in_the_middle(run, pid):
        rows = list(run.metric_rows())
        return bool(rows) and int(rows[-1]["step"]) > 20

    killer = Killer(*cluster, in_the_middle)
    ours = execute(tmp_path / "ray", RayExecutor(cluster[0].address), LONG, killer)
    killer.check(ours)
    check_same(ours, execute(tmp_path / "local", LocalExecutor(), LONG))


def test_two_nodes_without_any_accident(tmp_path, cluster):
    ours = execute(tmp_path / "ray", RayExecutor(cluster[0].address), {})
    check_same(ours, execute(tmp_path / "local", LocalExecutor(), {}))
    logs = [run.folder.with_name(f"{name}.log").read_text() for name, run in ours.items()]
    assert not any("resuming" in log for log in logs)
    again = execute(tmp_path / "ray", RayExecutor("nowhere"), {})  # nothing is left to do, so nobody is asked
    assert {name: open_run(run.folder).result() for name, run in again.items()} == {
        name: run.result() for name, run in ours.items()
    }


def test_a_node_that_dies_while_a_checkpoint_is_written_loses_nothing(tmp_path, cluster):
    def while_writing(run, pid):
        """Wait for the temporary file of a checkpoint, and stop its process while the file is still there."""
        file = run.checkpoints / f".new-last.ckpt.{pid}.tmp"
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and parent_of(pid) is not None:
            if file.exists() and (run.checkpoints / "last.ckpt").exists():
                os.kill(pid, signal.SIGSTOP)
                time.sleep(0.05)
                if file.exists():
                    return True
                os.kill(pid, signal.SIGCONT)
            time.sleep(0.0005)
        return False

    killer = Killer(*cluster, while_writing)
    ours = execute(tmp_path / "ray", RayExecutor(cluster[0].address), LARGE, killer)
    killer.check(ours)
    check_same(ours, execute(tmp_path / "local", LocalExecutor(), LARGE))
