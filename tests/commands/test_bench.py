"""`liere bench`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

import liere
from liere.bench import gpu, memory, points, rotations, scaling, step
from liere.cli import main, make_parser
from liere.commands.bench import _watcher

TINY = {"size": "vit_tiny", "depth": 1, "image_size": 8, "patch_size": 4, "num_classes": 3}


@pytest.fixture
def tiny(monkeypatch, hasty):
    """All questions with sizes that take seconds."""
    monkeypatch.setattr(rotations, "QUICK_CASES", [rotations.Case("tiny case", 4, head_dim=8, heads=1, grid=(2, 2))])
    monkeypatch.setattr(step, "QUICK_SITUATIONS", [step.Situation(8, 4, 1, depth=1)])
    monkeypatch.setitem(sys.modules, "timm", None)  # not installed
    monkeypatch.setattr(memory, "QUICK_SITUATIONS", [memory.Situation("tiny memory", 1, ("absolute", "liere8"), TINY)])
    monkeypatch.setattr(memory, "run_probe", lambda load: {"before": 10**8, "peak": 2 * 10**8})
    monkeypatch.setattr(points, "QUICK_SITUATION", points.Situation(2, 4, 1, dim=32, heads=2))
    monkeypatch.setattr(points, "run_probe", lambda load: {"before": 10**8, "peak": 2 * 10**8, "tensors": 10**8})
    monkeypatch.setattr(gpu, "QUICK_SITUATIONS", [gpu.Situation("vit_tiny", 8, 4, 2, torch.float32, depth=1)])
    monkeypatch.setattr(gpu, "ENCODINGS", ("absolute", "liere64"))
    monkeypatch.setattr(gpu, "BLOCKS", (2,))
    setup = scaling.Setup((2, 2), batch_size=1)
    varied = {name: [setup] for name in ("tokens", "block size", "axes", "batch size")}
    monkeypatch.setattr(scaling, "QUICK_VARIATIONS", varied)


@pytest.mark.filterwarnings("ignore:.*does not have many workers", "ignore:.*treespec, LeafSpec")
def test_all_questions_write_records_and_pictures(tiny, capsys, tmp_path, monkeypatch):
    pytest.importorskip("tests.training.requirements")
    from liere.bench import training

    monkeypatch.setattr(training, "QUICK", training.QUICK | {"model.dim": "16", "model.depth": "1"})
    folder = tmp_path / "new" / "folder"
    threads = str(torch.get_num_threads())
    arguments = ["--quick", "--rounds", "2", "--threads", threads, "--output", str(folder)]
    assert main(["bench", "all", *arguments]) == 0
    printed = capsys.readouterr()
    questions = ["rotations", "step", "memory", "scaling", "loading", "points", "training", "gpu"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        f"bench_{question}.{kind}" for question in questions for kind in ("json", "png")
    )
    for question in questions:
        record = json.loads((folder / f"bench_{question}.json").read_text())
        assert list(record) == [
            "command",
            "question",
            "quick",
            "rounds",
            "date",
            "machine",
            "versions",
            "notes",
            "rows",
        ]
        assert record["command"] == f"liere bench {question} --threads {threads} --quick"
        assert (record["question"], record["quick"], record["rounds"]) == (
            question,
            True,
            1 if question == "gpu" else 2,
        )
        assert record["versions"]["liere"] == liere.__version__
        assert record["rows"]
        assert (folder / f"bench_{question}.png").read_bytes().startswith(b"\x89PNG")
        assert f"wrote {folder / f'bench_{question}.json'}" in printed.out
    for shown in (
        "tiny case",
        "rope_mixed",
        "How much time does random placement add",
        "tiny memory",
        "batch size",
        "2 clouds of 4 points",
        "timm is not installed",
        "bare loop, fused AdamW",
        "not the model",
        "PREDICTED, not measured: a train step. vit_tiny, 8 px",
    ):
        assert shown in printed.out
    assert printed.out.count("quick run: do not quote") == 13  # some questions have two tables
    assert "tiny case, forward + backward: 0 of 2\n" in printed.err


def test_json_instead_of_a_table(tiny, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    assert main(["bench", "rotations", "--quick", "--rounds", "1", "--json", "--output", str(tmp_path)]) == 0
    records = json.loads(capsys.readouterr().out)
    assert records == {"rotations": json.loads((tmp_path / "bench_rotations.json").read_text())}


def test_threads_are_set_for_the_measurement_only(tiny, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    before = torch.get_num_threads()
    arguments = ["bench", "rotations", "--quick", "--rounds", "1", "--threads", str(before + 1)]
    assert main([*arguments, "--output", str(tmp_path)]) == 0
    record = json.loads((tmp_path / "bench_rotations.json").read_text())
    assert record["machine"]["threads"] == before + 1
    assert torch.get_num_threads() == before


def test_what_was_found_before_a_failure_is_kept(tiny, capsys, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")

    def fail(settings) -> None:
        raise OSError("no answer")

    monkeypatch.setattr(step, "measure", fail)
    assert main(["bench", "all", "--quick", "--rounds", "1", "--output", str(tmp_path)]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench_rotations.json", "bench_rotations.png"]


def test_arguments_and_their_defaults():
    args = make_parser().parse_args(["bench", "step"])
    assert (args.question, args.quick, args.rounds, args.threads, args.json) == ("step", False, None, None, False)
    assert args.output == Path("bench-results")
    arguments = "bench all --quick --output results --rounds 3 --threads 2 --json"
    args = make_parser().parse_args(arguments.split())
    assert (args.output, args.rounds, args.threads) == (Path("results"), 3, 2)
    assert args.quick
    assert args.json


def test_an_unknown_question_is_one_line_and_exit_code_2(capsys):
    assert main(["bench", "rotation"]) == 2
    assert capsys.readouterr().err == "liere: error: unknown question 'rotation': did you mean 'rotations'?\n"


def test_an_output_that_cannot_be_written_to_is_noticed_first(capsys, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(rotations, "measure", lambda settings: pytest.fail("measured"))
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        assert main(["bench", "rotations", "--output", str(folder)]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert f"--output {folder} cannot be written to" in error
        assert "choose another folder" in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("bench", "required: QUESTION"),
        ("bench step --rounds 0", "argument --rounds: must be a positive integer, for example 7, got '0'"),
        ("bench step --threads two", "argument --threads: must be a positive integer, for example 7, got 'two'"),
    ],
)
def test_usage_errors_exit_with_2(capsys, arguments, message):
    with pytest.raises(SystemExit) as stop:
        main(arguments.split())
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_help_names_every_question(capsys):
    with pytest.raises(SystemExit):
        main(["bench", "--help"])
    printed = capsys.readouterr().out
    assert all(
        f"\n  {name} " in printed
        for name in ("rotations", "step", "memory", "scaling", "loading", "points", "training", "all")
    )


def test_each_part_is_named_when_it_begins(capsys):
    watch = _watcher()
    for done in range(3):
        watch("race", done, 2)
    assert capsys.readouterr().err == "race: 0 of 2\n"


def test_a_device_that_is_not_there_is_reported(capsys, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert main(["bench", "all", "--device", "cuda", "--output", str(tmp_path / "new")]) == 2
    message = capsys.readouterr().err
    assert "--device is cuda, but torch" in message
    assert "finds no such device on this machine: use --device cpu, or install the build of torch for it" in message
    assert not (tmp_path / "new").exists()
    assert main(["bench", "step", "--device", "tpu"]) == 2
    assert "unknown device 'tpu': use cpu, cuda or mps" in capsys.readouterr().err


def test_on_another_device_what_belongs_to_the_cpu_is_left_out(monkeypatch, tiny, capsys, tmp_path):
    """The whole command, on a device that is not there; what it computes is real."""
    monkeypatch.setattr("liere.bench.devices.check_device", lambda name: torch.device(name))
    asked = []
    monkeypatch.setattr(
        "liere.commands.bench._answer",
        lambda question, *rest: asked.append((question, rest[-1])) or {"question": question},
    )
    assert main(["bench", "all", "--device", "cuda", "--output", str(tmp_path)]) == 0
    assert asked == [(question, torch.device("cuda")) for question in ("rotations", "step", "scaling", "points")]
    assert (
        "left out: memory, which is for the CPU only, since it measures the memory of a process"
        in capsys.readouterr().out
    )
    assert main(["bench", "loading", "--device", "cuda", "--output", str(tmp_path)]) == 2
    assert "the question loading is for the CPU only" in capsys.readouterr().err
