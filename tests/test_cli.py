from __future__ import annotations

import subprocess
import sys

import pytest
import torch

import liere
from liere.cli import main


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
        ("inspect vit_tiny --size vit_base", "--size vit_base is for weights files only, but MODEL is vit_tiny"),
        ("inspect vit_bas", "unknown size 'vit_bas': did you mean 'vit_base'?"),
        ("inspect nowhere.safetensors", "there is no weights file nowhere.safetensors"),
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
        ("flops --option share_heads", "write name=value"),
        ("flops --image-size 8y8", "write 224 for a square image"),
        ("nonsense", "invalid choice"),
        ("report run --name=--", "--name=-- has no value: give one"),
        ("train --config=--", "--config=-- has no value: give one"),
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
    assert r"a \x1b[2J\u202e\udcff.pt does not match" in error
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
        "liere: error: out of memory (Unable to allocate 9 TiB): use a smaller batch or model, or a machine with "
        "more memory\n"
    )


def test_traceback_on_demand():
    with pytest.raises(ValueError, match="unknown size"):
        main(["--traceback", "flops", "--size", "vit_bas"])


def test_runs_as_a_module():
    command = [sys.executable, "-m", "liere.cli", "flops", "--size", "vit_smal"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "did you mean 'vit_small'?" in done.stderr
