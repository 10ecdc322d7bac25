"""One model trained by several processes: it agrees with one process, and resumes with another number of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.torch_version import TorchVersion

pytest.importorskip("tests.training.requirements")
import yaml
from safetensors.torch import load_file

from liere.runs.checkpoints import load_checkpoint
from liere.runs.config_file import parse_config
from liere.runs.run import Run, create_run, open_run
from liere.training.fit import train
from tests.training.crew import start_crew
from tests.training.tiny import CONFIG, differences, quiet

pytestmark = quiet
STEPS = 5
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "liere_command")
DDP = ("--hardware.devices", "2", "--hardware.strategy", "ddp")
FSDP = ("--hardware.devices", "2", "--hardware.strategy", "fsdp")

needs_fsdp = pytest.mark.skipif(TorchVersion(torch.__version__) < "2.9", reason="fsdp needs torch 2.9")
EACH = [pytest.param(DDP, id="ddp"), pytest.param(FSDP, id="fsdp", marks=needs_fsdp)]


@pytest.fixture(scope="module")
def crew(tmp_path_factory):
    with start_crew(tmp_path_factory.mktemp("printed")) as started:
        yield started


def config(**changes: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration whose steps follow gradients, not rounding errors or the draws of a process."""
    content = yaml.safe_load(CONFIG)
    content["model"] |= {"dropout": 0.0, "attn_dropout": 0.0, "drop_path": 0.0}
    content["optimizer"] |= {"eps": 1e-3, "clip": 0.1, "learning_rate": 1e-2}
    # Three validation examples, all in one batch: the second process has none.
    content["training"] |= {"examples": 8 * STEPS, "accumulate": 2, "validation_examples": 3}
    content["training"] |= {"checkpoint_every": 1, "validate_every": 2}
    for section, fields in changes.items():
        content[section] |= fields
    return content


def write(folder: Path, **changes: dict[str, Any]) -> Path:
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config(**changes)))
    return path


def alone(folder: Path, **changes: dict[str, Any]) -> Run:
    """Train in this process."""
    run = create_run(folder, parse_config(config(**changes)))
    train(run, say=print)
    return run


def assert_agree(found: Run, expected: Run) -> None:
    """Assert that two runs have the same weights and validations, up to rounding."""
    for name in ("final.safetensors", "best.safetensors"):
        weights, others = load_file(found.folder / name), load_file(expected.folder / name)
        assert weights.keys() == others.keys()
        for key, weight in weights.items():
            torch.testing.assert_close(
                weight, others[key], atol=2e-5, rtol=1e-4, msg=lambda text, key=key: f"{key}: {text}"
            )
    curves = [run.curve() for run in (found, expected)]
    assert [one["examples"] for one in curves[0]] == [one["examples"] for one in curves[1]]
    for one, other in zip(*curves, strict=True):
        assert one["accuracy"] == other["accuracy"]
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-4)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """A run of one process."""
    return alone(tmp_path_factory.mktemp("runs") / "alone")


def test_the_comparison_can_fail(expected, tmp_path):
    other = alone(tmp_path / "other", optimizer={"clip": 0.099})
    with pytest.raises(AssertionError, match="not close"):
        assert_agree(other, expected)


def test_ddp_agrees_with_one_process_which_can_finish_it(expected, crew, tmp_path):
    printed = crew.run("train", "--config", write(tmp_path), "--out", tmp_path / "run", "--steps", "3", *DDP)
    assert printed.count("stopped as requested; resume with") == 1
    run = open_run(tmp_path / "run", {"hardware.devices": "1"})
    assert load_checkpoint(run.checkpoints / "last.ckpt").step == 3
    train(run, say=print)
    assert_agree(run, expected)


@needs_fsdp
def test_fsdp_agrees_with_one_process_which_can_finish_it(expected, crew, tmp_path):
    printed = crew.run("train", "--config", write(tmp_path), "--out", tmp_path / "run", "--steps", "3", *FSDP)
    assert printed.count("stopped as requested; resume with") == 1
    run = open_run(tmp_path / "run", {"hardware.devices": "1"})
    assert len(list((run.checkpoints / "last.ckpt").glob("*.safetensors"))) == 2
    assert load_checkpoint(run.checkpoints / "last.ckpt").step == 3
    assert load_checkpoint(run.checkpoints / "previous.ckpt").step == 2
    train(run, say=print)
    assert_agree(run, expected)


@pytest.mark.slow
@pytest.mark.parametrize("hardware", EACH)
class TestTwoProcesses:
    @pytest.mark.parametrize("like", ["torchrun", "slurm"])
    def test_they_finish_and_a_stop_changes_nothing(self, expected, crew, tmp_path, hardware, like):
        file = write(tmp_path)
        printed = crew.run("train", "--config", file, "--out", tmp_path / "whole", *hardware, like=like)
        assert printed.count("finished after 40 examples") == 1
        whole = open_run(tmp_path / "whole")
        assert_agree(whole, expected)
        crew.run("train", "--config", file, "--out", tmp_path / "run", "--steps", "3", *hardware, like=like)
        crew.run("train", "--resume", tmp_path / "run", like=like)
        stopped = open_run(tmp_path / "run")
        for name in ("final.safetensors", "best.safetensors"):
            assert (stopped.folder / name).read_bytes() == (whole.folder / name).read_bytes()
        if hardware is DDP:
            assert differences(stopped, whole) == []
        states = [load_checkpoint(run.checkpoints / "last.ckpt").optimizer["state"] for run in (stopped, whole)]
        for number, state in states[0].items():
            assert all(torch.equal(value, states[1][number][name]) for name, value in state.items())

    def test_they_finish_what_one_process_or_four_began(self, expected, crew, tmp_path, hardware):
        for ranks, words in ((1, ()), (4, ("--hardware.devices", "4", "--hardware.strategy", hardware[-1]))):
            run = tmp_path / str(ranks)
            crew.run("train", "--config", write(tmp_path), "--out", run, "--steps", "3", *words, ranks=ranks)
            crew.run("train", "--resume", run, *hardware)
            assert_agree(open_run(run), expected)

    def test_muon(self, crew, tmp_path, hardware):
        muon = {"optimizer": {"name": "muon"}}
        crew.run("train", "--config", write(tmp_path, **muon), "--out", tmp_path / "run", *hardware)
        assert_agree(open_run(tmp_path / "run"), alone(tmp_path / "alone", **muon))

    def test_half_precision_keeps_weights_in_full_precision(self, crew, tmp_path, hardware):
        half = ("--hardware.precision", "bf16-mixed")
        crew.run("train", "--config", write(tmp_path), "--out", tmp_path / "run", *hardware, *half)
        one = alone(tmp_path / "alone", hardware={"precision": "bf16-mixed"})
        for name, weight in load_file(one.final_weights).items():
            found = load_file(tmp_path / "run" / "final.safetensors")[name]
            assert found.dtype == weight.dtype
            torch.testing.assert_close(found, weight, atol=2e-3, rtol=1e-2)

    def test_one_training_and_one_validation_example(self, crew, tmp_path, hardware):
        few = {"data": {"train_examples": 1}, "training": {"validation_examples": 1}}
        crew.run("train", "--config", write(tmp_path, **few), "--out", tmp_path / "run", *hardware)
        assert_agree(open_run(tmp_path / "run"), alone(tmp_path / "alone", **few))


@pytest.mark.slow
@needs_fsdp
def test_fsdp_can_be_finished_with_ddp_and_the_other_way_round(expected, crew, tmp_path):
    for first, second in ((FSDP, DDP), (DDP, FSDP)):
        run = tmp_path / first[-1]
        crew.run("train", "--config", write(tmp_path), "--out", run, "--steps", "3", *first)
        crew.run("train", "--resume", run, *second)
        assert_agree(open_run(run), expected)


@pytest.mark.slow
@needs_fsdp
def test_a_damaged_shard_is_named_and_the_previous_checkpoint_used(expected, crew, tmp_path):
    crew.run("train", "--config", write(tmp_path), "--out", tmp_path / "run", "--steps", "3", *FSDP)
    shard = next((tmp_path / "run" / "checkpoints" / "last.ckpt").glob("*.safetensors"))
    shard.write_bytes(shard.read_bytes()[:-8])
    printed = crew.run("train", "--resume", tmp_path / "run")
    assert printed.count(f"{shard} is damaged (wrong checksum)") == 1
    assert f"resuming after step 2 of {STEPS}" in printed
    assert_agree(open_run(tmp_path / "run"), expected)


@pytest.mark.slow
@needs_fsdp
def test_training_longer(crew, tmp_path):
    crew.run("train", "--config", write(tmp_path), "--out", tmp_path / "run", *FSDP)
    printed = crew.run("train", "--resume", tmp_path / "run", "--training.examples", "64")
    assert printed.count("training longer") == 1
    assert open_run(tmp_path / "run").result()["step"] == 8
    assert (tmp_path / "run" / "shorter" / "40-examples" / "final.safetensors").exists()


def test_tasks_of_slurm_with_a_device_each_are_runs_of_their_own(crew, tmp_path):
    words = ("train", "--config", write(tmp_path), "--out", tmp_path / "run-RANK", "--training.seed", "RANK")
    printed = crew.run(*words, like="slurm")
    for rank in range(2):
        assert f"run-{rank}: finished after 40 examples" in printed
        assert open_run(tmp_path / f"run-{rank}").config.training.seed == rank


def wait_for(path: Path, text: str = "") -> None:
    deadline = time.monotonic() + 300
    while not (path.exists() and (not text or text in path.read_text())):
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.1)


def processes_of(group: int) -> list[int]:
    """Return the ids of the processes that torchrun, the leader of a group, has started."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(group)], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


@pytest.mark.slow
@pytest.mark.parametrize("hardware", EACH)
def test_sigterm_to_torchrun_saves(tmp_path, hardware):
    training = {"examples": 400_000, "checkpoint_every": 100_000, "validate_every": 100_000}
    words = ("train", "--config", write(tmp_path, training=training), "--out", tmp_path / "run", *hardware)
    command = [sys.executable, "-W", "ignore", *TORCHRUN, *map(str, words)]
    process = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for(tmp_path / "run" / "metrics.csv", "\n2,")
    for pid in processes_of(process.pid) if hardware is FSDP else ():  # as SLURM does; torchrun signals them again
        os.kill(pid, signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=300)
    assert process.returncode != 0
    assert output.count("stopped by SIGTERM; resume with") == 1, errors
    assert load_checkpoint(tmp_path / "run" / "checkpoints" / "last.ckpt").step > 0


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["first", "second", "torchrun"])
def test_the_processes_of_torchrun_end_together(tmp_path, victim):
    training = {"examples": 400_000, "checkpoint_every": 1}
    words = ("train", "--config", write(tmp_path, training=training), "--out", tmp_path / "run", *DDP)
    command = [sys.executable, "-W", "ignore", *TORCHRUN, *map(str, words)]
    process = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    wait_for(tmp_path / "run" / "metrics.csv", "\n2,")
    workers = processes_of(process.pid)
    assert len(workers) == 2
    os.kill({"first": workers[0], "second": workers[1], "torchrun": process.pid}[victim], signal.SIGKILL)
    _, errors = process.communicate(timeout=300)
    assert process.returncode != 0
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline, errors
        time.sleep(0.1)
    assert load_checkpoint(tmp_path / "run" / "checkpoints" / "last.ckpt").step > 0
