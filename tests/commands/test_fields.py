"""The fields of a configuration, in a file and as arguments: invalid values get an error with a remedy."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("tests.training.requirements")
from liere.cli import main
from tests.training.tiny import quiet

pytestmark = quiet


class TestBadConfigurations:
    @pytest.mark.parametrize(
        ("text", "parts"),
        [
            ("modle: {dim: 8}", ["tiny.yaml", "unknown field modle", "did you mean 'model'?"]),
            ("model: {dimm: 8}", ["tiny.yaml", "unknown field model.dimm", "did you mean 'dim'?"]),
            ("model: {dim: wide}", ["tiny.yaml", "model.dim must be", "'wide'"]),
            ("training: {examples: 1.5}", ["training.examples must be", "1.5"]),
            ("model: {dim: 8", ["tiny.yaml is not YAML"]),
            ("- 1\n- 2", ["tiny.yaml must contain sections", "[1, 2]"]),
        ],
    )
    def test_what_is_wrong_in_the_file_is_told(self, config, fail, text, parts):
        config.write_text(text)
        error = fail("train --config", config, "--out run")
        for part in parts:
            assert part in error

    def test_a_missing_file_is_told(self, tmp_path, fail):
        missing = tmp_path / "none.yaml"
        assert f"there is no configuration file {missing}" in fail("train --config", missing)

    def test_a_folder_instead_of_a_file_is_told(self, tmp_path, fail):
        assert str(tmp_path) in fail("train --config", tmp_path)

    @pytest.mark.parametrize(
        ("arguments", "parts"),
        [
            ("--model.dimm 8", ["--model.dimm", "did you mean '--model.dim'?"]),
            ("--model.dimm=8", ["--model.dimm", "did you mean '--model.dim'?"]),
            ("--model.di 8", ["--model.di", "did you mean '--model.dim'?"]),
            ("--ot run", ["--ot", "did you mean '--out'?"]),
            ("extra", ["extra"]),
            ("--model.dim wide", ["model.dim must be", "'wide'"]),
            ("--model.dim 1.5", ["model.dim must be", "1.5"]),
            ("--training.batch_size [", ["--training.batch_size", "'['", "is not a valid YAML value"]),
            ("--training.accumulate 3", ["training.batch_size 8", "training.accumulate 3", "choose a divisor"]),
            ("--hardware.devices 3", ["training.batch_size 8", "3 devices"]),
        ],
    )
    def test_what_is_wrong_on_the_command_line_is_told(self, config, fail, arguments, parts):
        error = fail("train --config", config, "--out run", arguments)
        for part in parts:
            assert part in error

    @pytest.mark.parametrize(
        ("arguments", "beginning"),
        [
            ("--model.dim wide", "--model.dim must be a valid integer, got 'wide'"),
            ("--training.accumulate 3", "--training.accumulate 3: training.batch_size 8 cannot be divided into"),
            ("--optimizer.lr 1", "unknown argument --optimizer.lr: did you mean '--optimizer.learning_rate'?"),
            ("--training.epochs 1", "unknown argument --training.epochs: did you mean '--training.examples'?"),
            ("--lr 1", "unknown argument --lr: did you mean '--optimizer.learning_rate'?"),
        ],
    )
    def test_the_command_line_is_blamed_and_not_the_file(self, config, fail, arguments, beginning):
        assert fail("train --config", config, "--out run", arguments).startswith(f"liere: error: {beginning}")

    def test_the_file_is_blamed_for_what_is_in_it(self, config, fail):
        config.write_text("model: {dim: wide, depth: deep}")
        error = fail("train --config", config, "--out run --model.depth 2")
        assert error.startswith(f"liere: error: {config}: model.dim must be a valid integer, got 'wide'")

    @pytest.mark.parametrize(
        ("arguments", "parts"),
        [
            ("--data.size 100", ["size must be a multiple of 12 px", "100", "use 96"]),
            ("--data.size 24 --data.distractor_arrows 9", ["size 24 has 2 x 2 cells", "9 distractor_arrows"]),
            ("--data.distance 5", ["distance must be between 1 and 2", "got 5"]),
            ("--data.distance [2,1]", ["distance must be between 1 and 2", "(2, 1)"]),
            ("--model.encoding lieer8", ["unknown encoding 'lieer8'", "did you mean 'liere8'?"]),
            ('--model.options {"share_head":1}', ["has no option 'share_head'", "did you mean 'share_heads'?"]),
            ("--model.dim 15", ["dim=15 is not divisible by heads=2"]),
            ("--model.patch_size 7", ["is not divisible by patch_size"]),
            ("--model.dim null", ["dim"]),
            ("--model.size vit_tny", ["unknown size 'vit_tny'", "did you mean 'vit_tiny'?"]),
            # torch's own error, "Overflow when unpacking long long", names no field.
            ("--data.seed 9223372036854775808", ["seed", "9223372036854775808"]),
            ("--training.seed 99999999999999999999", ["seed", "99999999999999999999"]),
            # Lightning would report these only after the folder of the run is created.
            ("--hardware.accelerator cpuu", ["accelerator", "'cpuu'"]),
            ("--hardware.accelerator gpu", ["accelerator", "gpu"]),
        ],
    )
    def test_what_does_not_fit_together_is_told_before_anything_is_made(self, config, fail, arguments, parts):
        if arguments.endswith("gpu") and torch.cuda.is_available():
            pytest.skip("there is a GPU")
        error = fail("train --config", config, "--out run", arguments)
        for part in parts:
            assert part in error


def test_help_names_the_fields(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train", "--help"])
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    for field in ("--model.dim", "--optimizer.generator_learning_rate", "--training.accumulate", "--hardware.devices"):
        assert field in printed
