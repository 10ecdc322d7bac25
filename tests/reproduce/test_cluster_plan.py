"""The plan of a reproduction on a cluster."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

pytest.importorskip("tests.training.requirements")
from liere.errors import InputError
from liere.reproduce.cluster_plan import (
    TRIALS,
    MissingRuns,
    _outcome,
    _parameters,
    _task,
    describe_cluster,
    find_missing,
)
from liere.reproduce.gpu_sheets import choose_gpu
from liere.reproduce.node_failures import Trial
from liere.reproduce.request import make_request, prepare_request
from liere.runs.model import build_model, count_parameters
from tests.reproduce.fakes import finish, predictions

DAY = 86_400.0


def prepared(tmp_path, *names: str, **options):
    return [prepare_request(make_request(name, scale="paper", out=tmp_path, **options)) for name in names]


def test_shared_runs_count_once(tmp_path):
    init, block = prepared(tmp_path, "init", "block")
    both = find_missing([init, block])
    names = {run.folder.name for one in (init, block) for run in one.runs()}
    assert {run.folder.name for run in both.runs} == names
    assert len(names) < len(init.runs()) + len(block.runs())
    assert set(both.tables.values()) >= {("init",), ("block",), ("init", "block")}
    assert (both.finished, both.unknown) == (0, 0)


def test_finished_runs_are_not_planned_again(tmp_path):
    (block,) = prepared(tmp_path, "block")
    first, *others = block.runs()
    finish(first, first.folder, {condition: predictions(0.5) for condition in first.conditions})
    missing = find_missing([block])
    assert {run.folder for run in missing.runs} == {run.folder for run in others}
    assert missing.finished == 1


def test_runs_of_unknown_cost_are_counted(tmp_path):
    (main,) = [prepare_request(make_request("main", scale="small", out=tmp_path, own=True, data=tmp_path))]
    missing = find_missing([main])
    assert missing.unknown > 0
    assert "of unknown cost, because their data is missing" in describe_cluster(missing, choose_gpu(), 8, 1.0)[0]


def test_the_time_and_the_checkpoints_of_a_run_are_those_of_its_recipe(tmp_path):
    (main,) = prepared(tmp_path, "main", only=["ImageNet-1k"], encodings=["liere8"])
    (run,) = main.runs()
    gpu = choose_gpu("a100", utilization=0.5)
    task = _task(run, gpu, ("main",))
    assert task.seconds == pytest.approx(run.operations / (0.5 * 19.5e12))
    training = run.config.training
    assert task.saved_every == pytest.approx(task.seconds * 500 / training.steps)
    seldom = training.model_copy(update={"checkpoint_every": 10**9})
    later = replace(run, config=run.config.model_copy(update={"training": seldom}))
    assert _task(later, gpu, ()).saved_every == pytest.approx(task.seconds * 2_503 / training.steps)


def test_fine_tuning_waits_for_its_source(tmp_path):
    (resolution,) = prepared(tmp_path, "resolution")
    missing = find_missing([resolution])
    tasks = [_task(run, choose_gpu(), ()) for run in missing.runs]
    sources = {task.after for task in tasks} - {None}
    assert sources
    assert sources < {task.name for task in tasks}


def test_parameters_are_counted_without_making_them(tmp_path):
    (size,) = prepared(tmp_path, "block")
    config = size.runs()[0].config
    assert _parameters(config, {}) == count_parameters(build_model(config))


def test_the_plan_of_a_table(tmp_path):
    missing = find_missing(prepared(tmp_path, "block", "init"))
    text = "\n".join(describe_cluster(missing, choose_gpu("h100"), 12, 1.0))
    for part in (
        f"runs: {len(missing.runs)} to train, 0 finished",
        "GPU: H100 SXM, 67 T operations per second in fp32, of which training reaches 22 %",
        " GPU hours (starting processes, loading data and testing are not included)",
        " on 12 GPUs, one GPU per run, the longest first; GPUs are busy ",
        "longest run: ",
        "complete after",
        "storage: ",
        "(the last two of each run)",
        "failures: 1 per day among 2 nodes of up to 8 GPUs, 10 minutes until the runs of a node cont",
        "resume from checkpoints",
        "start again",
        f"; {TRIALS} simulations",
    ):
        assert part in text
    assert "failures: none assumed" in describe_cluster(missing, choose_gpu(), 12, 0.0)


def test_runs_on_several_gpus(tmp_path):
    options = {"only": ["ImageNet-1k"], "encodings": ["liere8", "rope_mixed", "absolute"]}
    one = find_missing(prepared(tmp_path, "main", **options))
    eight = find_missing(prepared(tmp_path, "main", overrides={"hardware.devices": "8"}, **options))
    gpu = choose_gpu()
    for narrow, wide in zip(one.runs, eight.runs, strict=True):
        # The exponential is shared by fewer images.
        assert _task(wide, gpu, ()).seconds == pytest.approx(_task(narrow, gpu, ()).seconds / 8, rel=0.1)
    narrow, wide = (describe_cluster(missing, gpu, 20, 1.0) for missing in (one, eight))
    used, unused = len(one.runs), 20 - len(one.runs)
    assert any(
        f"on {used} GPUs, one GPU per run" in line and f"; {unused} GPUs are not used" in line for line in narrow
    )
    assert any("on 16 GPUs, 8 GPUs per run" in line for line in wide)
    assert any("To make it shorter, use several GPUs per run" in line for line in narrow)
    assert not any("To make it shorter" in line for line in wide)
    assert any("among 3 nodes" in line for line in wide)
    with pytest.raises(InputError, match="--gpus 4 is not enough for a run on 8 GPUs"):
        describe_cluster(eight, gpu, 4, 1.0)


def test_a_cluster_that_is_much_too_large_or_fails_all_the_time(tmp_path):
    missing = find_missing(prepared(tmp_path, "init"))
    lines = describe_cluster(missing, choose_gpu(), 10**6, 1.0)
    assert any("999,996 GPUs are not used" in line for line in lines)
    assert any("1 per day among 125,000 nodes" in line for line in lines)
    with pytest.raises(InputError, match=r"--failures-per-day 25 is more than 24 per node of this cluster \(1 node\)"):
        describe_cluster(missing, choose_gpu(), 4, 25.0)
    assert any("never" in line for line in describe_cluster(missing, choose_gpu(), 4, 24.0))


def test_nothing_to_train():
    assert describe_cluster(MissingRuns([], {}, 3, 0), choose_gpu(), 8, 1.0) == ["runs: 0 to train, 3 finished"]


def test_outcomes():
    trials = [Trial(DAY * (1 + n / 10), DAY * n / 10) for n in range(10)]
    assert _outcome(trials, DAY) == ["35 hours", "43 hours", "10.8", "45.0 %"]
    assert _outcome([*trials, Trial(math.inf, math.inf)], DAY) == ["never", "never", "-", "-"]
