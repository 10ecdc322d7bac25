"""`liere bench step --timm NAME`, on a tiny model."""

from __future__ import annotations

import importlib.util
import json
import sys

import pytest

from liere.bench import timm_step
from liere.bench.record import Settings
from liere.bench.tables import make_tables
from liere.cli import main
from liere.optional.torchvision_ops import import_with_torchvision

if importlib.util.find_spec("timm") is None or importlib.util.find_spec("torchvision") is None:
    pytest.skip("timm is not installed", allow_module_level=True)

timm = import_with_torchvision("timm")
pytestmark = pytest.mark.usefixtures("hasty")
TINY = {"embed_dim": 32, "num_heads": 2, "depth": 2}


@pytest.fixture
def tiny(monkeypatch):
    """Models as they are called, but small."""
    create = timm.create_model

    def create_tiny(name, **options):
        return create(name, **(TINY if name.startswith("vit") else {}), **options)

    monkeypatch.setattr(timm, "create_model", create_tiny)


def test_a_plain_model_has_one_start(tiny):
    answer = timm_step.measure("vit_tiny_patch16_224", Settings(quick=True, rounds=2))
    original, converted = answer.rows
    assert (original["model"], converted["model"]) == ("original", "liere8 from identity")
    assert (
        converted["parameters"] - original["parameters"] == 2 * 2 * 2 * 2 * 28
    )  # layers, axes, heads, blocks, entries
    assert original["situation"] == "224 x 224 px, 2 layers, batch 1"
    for row in answer.rows:
        for part in ("train", "inference"):
            assert row[part]["seconds"]["median"] > 0
            assert row[part]["ratio"]["median"] > 0
    assert original["train"]["ratio"] == {"median": 1.0, "quartiles": [1.0, 1.0]}


def test_a_model_with_rope_has_two(tiny, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    name = "vit_small_patch16_rope_mixed_224"
    arguments = ["bench", "step", "--timm", name, "--quick", "--rounds", "1", "--output", str(tmp_path)]
    assert main(arguments) == 0
    record = json.loads((tmp_path / "bench_timm.json").read_text())
    assert record["command"] == f"liere bench step --timm {name} --quick"
    assert [row["model"] for row in record["rows"]] == ["original", "liere8 from identity", "liere8 from rope"]
    assert (tmp_path / "bench_timm.png").read_bytes().startswith(b"\x89PNG")
    (table,) = make_tables(record)
    assert table.rows[0][1].startswith("1 = ")
    printed = capsys.readouterr().out
    assert f"What does converting {name} cost? 224 x 224 px, 2 layers, batch 1 (quick run: do not quote)" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("step --timm vit_tiny_patch16_22", "timm has no model 'vit_tiny_patch16_22': did you mean"),
        ("step --timm convnext_atto", "ConvNeXt cannot be converted"),
        ("memory --timm vit_tiny_patch16_224", "--timm vit_tiny_patch16_224 belongs to the question step"),
    ],
)
def test_errors_are_one_line(arguments, message, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    assert main(["bench", *arguments.split(), "--quick", "--output", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_without_timm_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'liere\[timm\]'"):
        timm_step.measure("vit_tiny_patch16_224", Settings())
