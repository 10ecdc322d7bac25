"""The numbers in the README are those of the committed results."""

from __future__ import annotations

import statistics

import pytest

from liere.bench.table_parts import with_quartiles
from tests.docs.pages import ROOT, numbers

README = ROOT / "README.md"

pytestmark = pytest.mark.skipif(not README.exists(), reason="the page is not beside the tests")


def test_costs():
    names = {
        "none": "no positions",
        "rope_mixed": "RoPE-Mixed",
        "liere8": "LieRE_8",
        "liere64": "LieRE_64 (dense)",
        "timm absolute": "timm's ViT, absolute",
        "timm rope_mixed": "timm's ViT, RoPE-Mixed",
    }
    for model, name in names.items():
        rows = [row for row in numbers("bench_step.json")["rows"] if row["model"] == model]
        assert [row["image_size"] for row in rows] == [32, 224]
        ratios = [with_quartiles(row[part]["ratio"]) for row in rows for part in ("train", "inference")]
        assert f"| {name} | {' | '.join(ratios)} |" in README.read_text()


def test_the_spatial_task():
    readme = README.read_text()
    for row in numbers("placement.json")["encodings"]:
        seeds = [[100 * value for value in found["by_seed"]] for found in row["evaluations"]]
        ours = [
            f"{statistics.fmean(values):.1f}" + (f" ({min(values):.1f}-{max(values):.1f})" if len(values) > 1 else "")
            for values in seeds
        ]
        paper = " / ".join(f"{value:.1f}" for value in row["paper"].values())
        assert f" | {' | '.join(ours)} | {paper} |\n" in readme
        for value in row["options"].values():  # what the recipe does not say is in the command below the table
            assert f"{row['encoding'].split(':')[0]}:init_scale={value}" in readme
