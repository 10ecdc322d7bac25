from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
import torch

import liere
from liere.cli import main, parse_arguments
from liere.flops import PAPER
from tests.integrations.test_reference import reference_weights


def test_flops_prints_the_papers_table(capsys):
    assert main(["flops"]) == 0
    printed = capsys.readouterr().out
    figures = {f"{figure.giga:.3f}" for figure in PAPER.values()} - {"0.970"}
    assert len(figures) == 11
    for figure in figures:
        assert len(re.findall(rf"\b{figure} G", printed)) >= 2, figure
    lines = {tuple(line.split()[:2]): line for line in printed.splitlines() if line.startswith("vit_")}
    assert len(lines) == 15
    assert {key for key, line in lines.items() if "*" in line} == {
        ("vit_tiny", "liere64"),
        ("vit_large", "liere8"),
    }
    assert "0.970 G (+0.727 %) *   1.002 G" in lines["vit_tiny", "liere64"]
    assert "* a slip of the paper" in printed


def test_flops_json_for_any_size_encoding_and_input(capsys):
    arguments = "flops --json --size vit_small --encoding liere48 sincos --image-size 8x32x32 --patch-size 2x4x4"
    assert main([*arguments.split(), "--batch-size", "16", "--num-classes", "101"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [row["encoding"] for row in report["rows"]] == ["liere48", "sincos"]
    for row in report["rows"]:
        assert row["printed"] is None
        parts = ["patch_embedding", "projections", "attention", "mlp", "head", "norms"]
        assert row["backbone"] == sum(row[part] for part in parts)
    assert report["rows"][0]["true"] > report["rows"][0]["paper"]


@pytest.mark.parametrize("change", [["--depth", "13"], ["--dim", "1536"]])
def test_flops_changing_a_dimension_changes_every_computed_cell(capsys, change):
    def cells(arguments: list[str]) -> list[list[str]]:
        assert main(arguments) == 0
        rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("vit_")]
        return [re.split(r"\s{2,}", row)[-2:] for row in rows]

    for before, after in zip(cells(["flops"]), cells(["flops", *change]), strict=True):
        assert before[0] != after[0]
        assert before[1] != after[1]


def test_comparisons_take_both_starts_of_absolute_positions_unless_told_otherwise():
    encodings = parse_arguments(["compare", "--config", "x.yaml"]).encodings
    assert encodings == ["absolute:init_std=1", "absolute", "visionllama", "rope_mixed", "liere8", "liere"]
    assert parse_arguments(["compare", "--config", "x.yaml", "--encodings", "none"]).encodings == ["none"]


@pytest.mark.parametrize(("options", "encodings", "sizes"), [([], 5, [108, 168, 276, 372]), (["--quick"], 2, [60, 84])])
def test_the_demo_compares_encodings(monkeypatch, tmp_path, options, encodings, sizes):
    pytest.importorskip("pydantic")
    from liere.comparison.result import ComparisonResult

    plans = []

    def run_comparison(plan, **_):
        plans.append(plan)
        return ComparisonResult((), {})

    monkeypatch.setattr("liere.toolkit.comparisons.run_comparison", run_comparison)
    monkeypatch.setattr("liere.commands.results._show", lambda result: None)
    assert main(["demo", "--out", str(tmp_path), *options]) == 0
    (plan,) = plans
    assert len(plan.runs) == encodings
    assert {run.config.model.encoding for run in plan.runs} >= {"absolute", "liere"}
    assert plan.sizes == sizes
    assert len({run.config.training.seed for run in plan.runs}) == 1
    placed = {run.config.model.encoding for run in plan.runs if run.config.model.position_shift}
    assert placed == ({run.config.model.encoding for run in plan.runs} - {"absolute"})


@pytest.mark.slow
def test_the_quick_demo_shows_the_contrast(tmp_path, capsys):
    pytest.importorskip("pydantic")
    assert main(["demo", "--quick", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.rstrip().endswith("report.html")
    report = json.loads((tmp_path / "quick" / "report.json").read_text())
    accuracy = {row["encoding"]: row["evaluations"][0]["accuracy"]["value"] for row in report["encodings"]}
    assert accuracy["absolute"] < 0.7
    assert accuracy["liere"] > 0.95


@pytest.mark.parametrize("encoding", ["none", "absolute", "visionllama", "rope_mixed", "liere8"])
def test_inspect_a_size(capsys, tmp_path, encoding):
    pytest.importorskip("matplotlib")
    arguments = ["inspect", "vit_tiny", "--encoding", encoding, "--image-size", "8", "--out", str(tmp_path)]
    assert main(arguments) == 0
    assert "parameters" in capsys.readouterr().out
    assert (tmp_path / "inspect.png").stat().st_size > 20_000
    assert len(json.loads((tmp_path / "inspect.json").read_text())["layers"]) == 12


def test_inspect_weights_of_the_published_code(capsys, tmp_path):
    torch.save({"state_dict": {f"model.{k}": v for k, v in reference_weights().items()}}, tmp_path / "last.ckpt")
    assert main(["inspect", str(tmp_path / "last.ckpt"), "--encoding", "liere8", "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)
    assert len(numbers["layers"]) == 2
    assert numbers["layers"][0]["angles"] == numbers["layers"][1]["angles"]


def test_inspect_own_weights(capsys, tmp_path):
    model = liere.create_model("vit_tiny", encoding="liere8", image_size=8, patch_size=4, num_classes=100)
    torch.save(model.state_dict(), tmp_path / "w.pt")
    arguments = ["inspect", str(tmp_path / "w.pt"), "--image-size", "8", "--json"]
    assert main(arguments) == 2
    assert "name the size of the model it belongs to with --size" in capsys.readouterr().err
    assert main([*arguments, "--size", "vit_small"]) == 2
    assert "does not fit the size, encoding and options" in capsys.readouterr().err
    assert main([*arguments, "--size", "vit_tiny"]) == 0
    assert len(json.loads(capsys.readouterr().out)["layers"]) == 12


def test_inspect_weights_of_a_model_with_options(capsys, tmp_path):
    options = {"depth": 2, "share_heads": True, "pool": "mean", "num_registers": 2}
    model = liere.create_model("vit_tiny", encoding="liere8", image_size=8, patch_size=4, num_classes=100, **options)
    torch.save(model.state_dict(), tmp_path / "w.pt")
    arguments = f"inspect {tmp_path / 'w.pt'} --image-size 8 --json --size vit_tiny --depth 2"
    assert main([*arguments.split(), "--option", "share_heads=true", "pool=mean", "num_registers=2"]) == 0
    assert json.loads(capsys.readouterr().out)["encoding_parameters"] == model.encoding.generators.numel()


def test_the_seed_decides_what_a_new_model_is(capsys):
    outputs = []
    for seed in (0, 0, 1):
        main(["inspect", "vit_tiny", "--image-size", "8", "--json", "--seed", str(seed)])
        outputs.append(json.loads(capsys.readouterr().out)["layers"][0]["angles"])
    assert outputs[0] == outputs[1]
    assert outputs[0] != outputs[2]


def test_flops_with_options(capsys):
    command = ["flops", "--size", "vit_base", "--encoding", "liere8", "--json"]
    assert main([*command, "--option", "share_heads=true"]) == 0
    shared = json.loads(capsys.readouterr().out)["rows"][0]
    assert main(command) == 0
    assert shared["exponential"] * 12 == json.loads(capsys.readouterr().out)["rows"][0]["exponential"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("flops --size vit_bas", "unknown size 'vit_bas': did you mean 'vit_base'?"),
        ("flops --encoding leire8", "unknown encoding 'leire8': did you mean 'liere8'?"),
        ("flops --image-size 33", "is not divisible by patch_size"),
        ("flops --batch-size 0", "batch_size must be at least 1, got 0"),
        ("flops --dim 100", "dim=100 is not divisible by heads=6"),
        ("flops --dim 0", "dim must be at least 1, got 0"),
        ("flops --mlp-dim -5", "mlp_dim must be at least 1, got -5"),
        ("flops --num-classes -1", "num_classes must be at least 0, got -1"),
        ("flops --in-channels 0", "in_channels must be at least 1, got 0"),
        ("flops --option share_head=1 --encoding liere8", "has no option 'share_head': did you mean 'share_heads'?"),
        ("inspect vit_tiny --size vit_base", "--size vit_base goes with a file of weights, but MODEL is vit_tiny"),
        ("inspect vit_bas", "unknown size 'vit_bas': did you mean 'vit_base'?"),
        ("inspect nowhere.safetensors", "no file of weights at nowhere.safetensors"),
        ("inspect vit_tiny --encoding liere65", "block_size must be between 2 and head_dim=64, got 65"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, arguments, message):
    assert main(arguments.split()) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith("liere: error: ")
    assert message in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("flops --option share_heads", "write it as name=value"),
        ("flops --image-size 8y8", "write 224 for a square image"),
        ("nonsense", "invalid choice"),
        ("", "required"),
    ],
)
def test_usage_errors_exit_with_2(capsys, arguments, message):
    with pytest.raises(SystemExit) as stop:
        main(arguments.split())
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"liere {liere.__version__}\n"


def test_names_and_text_of_files_are_shown_and_not_obeyed(capsys, tmp_path):
    path = tmp_path / "a\n\x1b[2J\u202e\udcff.pt"
    torch.save({"fc": torch.zeros(1)}, path)
    assert main(["inspect", str(path), "--size", "vit_tiny"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.rstrip("\n").isprintable()
    assert r"a \x1b[2J\u202e\udcff.pt does not fit" in error
    assert len(error) < 1_000
    torch.save({"to_patch_embedding.1.weight": torch.zeros(1), "\x1b[31mred": torch.zeros(1)}, tmp_path / "b.pt")
    assert main(["inspect", str(tmp_path / "b.pt")]) == 2
    error = capsys.readouterr().err
    assert r"unexpected: \x1b[31mred" in error
    assert error.count("\n") == 1


def test_out_of_memory_is_told_in_a_line(capsys, monkeypatch):
    def fail(args):
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr(liere.commands.flops, "run", fail)
    assert main(["flops"]) == 2
    assert capsys.readouterr().err == (
        "liere: error: out of memory (Unable to allocate 9 TiB): use less data, smaller sizes or another machine\n"
    )


def test_traceback_on_demand():
    with pytest.raises(ValueError, match="unknown size"):
        main(["--traceback", "flops", "--size", "vit_bas"])


def test_runs_as_a_module():
    command = [sys.executable, "-m", "liere.cli", "flops", "--size", "vit_smal"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "did you mean 'vit_small'?" in done.stderr
