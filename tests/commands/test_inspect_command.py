"""`liere inspect`."""

from __future__ import annotations

import json
import sys

import pytest
import torch

import liere
from liere.cli import main
from tests.integrations.test_reference import reference_weights


@pytest.mark.parametrize("encoding", ["none", "absolute", "visionllama", "rope_mixed", "liere8"])
def test_inspect_a_size(capsys, tmp_path, encoding):
    pytest.importorskip("matplotlib")
    arguments = ["inspect", "vit_tiny", "--encoding", encoding, "--image-size", "8", "--out", str(tmp_path)]
    assert main(arguments) == 0
    assert "parameters" in capsys.readouterr().out
    assert (tmp_path / "inspect.png").stat().st_size > 20_000
    assert len(json.loads((tmp_path / "inspect.json").read_text())["layers"]) == 12


@pytest.mark.parametrize("package", ["matplotlib", "numpy", "PIL"])
def test_inspect_without_what_pictures_need_leaves_nothing(tmp_path, fail, monkeypatch, package):
    pytest.importorskip("matplotlib")
    monkeypatch.setitem(sys.modules, package, None)
    assert "pip install 'liere[plot]'" in fail("inspect vit_tiny --depth 1 --image-size 8 --out", tmp_path / "new")


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
    assert "give the size of its model with --size" in capsys.readouterr().err
    assert main([*arguments, "--size", "vit_small"]) == 2
    assert "does not match the size, encoding and options" in capsys.readouterr().err
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


def test_a_seed_beyond_those_of_torch_is_reported(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["inspect", "vit_tiny", "--seed", 23 * "9"])
    assert "argument --seed: must be a non-negative integer below 2**63" in capsys.readouterr().err
