"""`liere flops`."""

from __future__ import annotations

import json
import re

import pytest

from liere.cli import main
from liere.flops import PAPER


def test_prints_the_papers_table(capsys):
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
    assert "* Error in the paper" in printed


def test_json_for_any_size_encoding_and_input(capsys):
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
def test_changing_a_dimension_changes_every_computed_cell(capsys, change):
    def cells(arguments: list[str]) -> list[list[str]]:
        assert main(arguments) == 0
        rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("vit_")]
        return [re.split(r"\s{2,}", row)[-2:] for row in rows]

    for before, after in zip(cells(["flops"]), cells(["flops", *change]), strict=True):
        assert before[0] != after[0]
        assert before[1] != after[1]


def test_with_options(capsys):
    command = ["flops", "--size", "vit_base", "--encoding", "liere8", "--json"]
    assert main([*command, "--option", "share_heads=true"]) == 0
    shared = json.loads(capsys.readouterr().out)["rows"][0]
    assert main(command) == 0
    assert shared["exponential"] * 12 == json.loads(capsys.readouterr().out)["rows"][0]["exponential"]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("image_size=3", "--option image_size is not an option of an encoding: use --image-size"),
        ("encoding=3", "--option encoding is not an option of an encoding: use --encoding"),
        ("size=3", "--option size is not an option of an encoding: use --size"),
        ("batch_size=3", "--option batch_size is not an option of an encoding: use --batch-size"),
        ("shape=1", "encoding 'liere8' has no option 'shape'"),
        ("init_scale=abc", "init_scale must be a number, got 'abc' of type str"),
        ("share_heads=[[true]]", "share_heads must be true or false, got [[True]] of type list"),
        ("num_prefix_tokens=abc", "num_prefix_tokens must be an int, got 'abc'"),
        ("exp_norm=1e999", "exp_norm must be between 0 and 1e+12, got inf"),
    ],
)
def test_wrong_options_are_reported(fail, option, message):
    assert message in fail("flops --size vit_tiny --encoding liere8 --option", option)


@pytest.mark.parametrize(
    "change", ["--image-size 1000000000", "--image-size 1000000000000000000", "--dim 6000000000000"]
)
def test_a_model_larger_than_any_memory_is_reported(fail, change):
    assert "out of memory" in fail("flops --size vit_tiny --encoding absolute liere", change)
