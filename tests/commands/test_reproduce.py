"""`liere reproduce`."""

from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")
from liere.cli import main


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("mian", "unknown table or figure 'mian': did you mean 'main'?"),
        ("main --only MNIST", "--only 'MNIST' is not a data set of main at this scale: choose from CIFAR-10"),
        ("main --model.encoding liere8", "--model.encoding is varied by the experiments themselves"),
        ("spatial --data.flip true", "--data.flip is not a field of any of these data sets (spatial)"),
        ("main --only CIFAR-10 --own --data nowhere", "no cifar10 in nowhere"),
        ("fraction --data.fraction 0.5", "--data.fraction is varied by this experiment"),
        ("resolution --optimizer.learning_rate 1e-3", "--optimizer.learning_rate is varied by this experiment"),
        (
            "main --data.root somewhere",
            "--data.root needs a single data set, but this experiment has several: use --data",
        ),
        ("block --own --hardware.devices 2", "--configs"),
        ("main --own --data nowhere", "no cifar10 in nowhere"),
        ("main --own --data nowhere", "(render it with python tools/make_clips.py; see docs/how-to/data-sets.md)"),
    ],
)
def test_it_is_told_in_a_line_before_anything_runs(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments.split()]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.rglob("config.yaml"))


def test_configurations_can_be_written_and_trained(tmp_path, capsys):
    assert main(["reproduce", "block", "--scale", "paper", "--configs", str(tmp_path)]) == 0
    assert len(list(tmp_path.glob("*.yaml"))) == 14
    file = next(tmp_path.glob("cifar-100-liere48-*.yaml"))
    assert main(["train", "--config", str(file), "--data.root", "nowhere", "--dry-run"]) == 2
    assert "no cifar100 in nowhere" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "encodings", "message"),
    [
        ("significance", "liere8 liere4", "it compares only RoPE-Mixed and LieRE₈: omit --encodings"),
        ("compute", "rope_mixed liere8", "its baseline is absolute positions: add absolute, or"),
        ("block", "liere4 sincos", "it compares block sizes, which only rope_mixed and liere have: omit sinc"),
    ],
)
def test_a_table_that_cannot_be_made_of_them_says_so(tmp_path, capsys, name, encodings, message):
    # The runs of all tables come with the project, so that no other error can occur first.
    for more in ([], ["--dry-run"], ["--configs", str(tmp_path / "configs")]):
        assert main(["reproduce", name, "--out", str(tmp_path), "--encodings", *encodings.split(), *more]) == 2
        assert f"{name} cannot be made with --encodings {encodings}: {message}" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("more", ["--dry-run", "--configs configs", ""])
@pytest.mark.parametrize(
    ("encodings", "message"),
    [
        ("liere8 rope_mixde", "unknown encoding 'rope_mixde': did you mean 'rope_mixed'?"),
        ("absolute:init_sdt=2", "encoding 'absolute' has no option 'init_sdt': did you mean 'init_std'?"),
    ],
)
def test_misspellings_are_told_without_data(tmp_path, monkeypatch, capsys, encodings, message, more):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "main", "--encodings", *encodings.split(), *more.split()]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_encoding_without_what_is_varied_is_told(tmp_path, capsys):
    assert main(["reproduce", "init", "--encodings", "sincos", "--dry-run", "--out", str(tmp_path)]) == 2
    assert "encoding 'sincos' has no option 'init_scale'" in capsys.readouterr().err


def test_seeds_and_encodings_can_be_others(tmp_path, capsys):
    arguments = ["main", "--scale", "paper", "--only", "CIFAR-100", "--configs", str(tmp_path)]
    assert main(["reproduce", *arguments, "--seeds", "3", "5", "--encodings", "sincos", "absolute:init_std=2"]) == 0
    names = {file.name.rsplit("-", 1)[0] for file in tmp_path.glob("*.yaml")}
    assert names == {f"cifar-100-{name}-seed{seed}" for name in ("sincos", "absolute-init_std-2") for seed in (3, 5)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("all --gpus 64", "--gpus 64 plans for a cluster and trains nothing: add --dry-run, or use --jobs"),
        ("all --dry-run --gpu h100", "--gpu h100 needs --gpus: add --gpus 64, for example"),
        ("all --dry-run --failures-per-day 2", "--failures-per-day 2.0 needs --gpus"),
        ("all --dry-run --gpus 8 --failures-per-day -1", "--failures-per-day must be at least 0, got -1.0"),
        ("all --dry-run --gpus 8 --gpu tpu", "unknown GPU 'tpu': "),
        ("mian --dry-run --gpus 8", "unknown table or figure 'mian': did you mean 'main'?"),
        ("init --scale paper --dry-run --gpus 4 --hardware.devices 8", "--gpus 4 is not enough for a run on 8 GPUs"),
    ],
)
def test_errors_of_a_plan_for_a_cluster(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments.split()]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_plan_for_a_cluster_needs_no_data_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = "reproduce init --scale paper --dry-run --gpus 16 --gpu-tflops 100 --utilization 0.5 --failures-per-day 3"
    assert main(words.split()) == 0
    printed = capsys.readouterr()
    assert "runs: 4 to train, 0 finished\n" in printed.out
    assert "GPU: GPU, 100 T operations per second in fp32, of which training reaches 50 %" in printed.out
    assert "failures: 3 per day among 2 nodes" in printed.out
    assert printed.err == ""
    assert not list(tmp_path.iterdir())
