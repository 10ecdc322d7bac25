"""Compiled, exported and traced models agree with eager ones. In processes without shape checks, as users have them."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from tests.integrations.timm.families import FAMILIES

START = """
import sys, warnings
warnings.simplefilter("ignore")
import torch
from liere.integrations.timm import convert  # before timm: it makes sure that torchvision can be imported
from tests.integrations.timm.families import *
torch.set_num_threads(1)
for text in sys.argv[1:]:
    name, start = text.rsplit(" ", 1)
    family = next(family for family in FAMILIES if family.id == name)
    sized = {} if family.is_flexible else {"dynamic_img_size": True}
    model = with_random_generators(convert(make(family, **sized), "liere8", start))
"""
EXPORT = (
    START
    + """
    x, more = images(family), images(family, batch=5)
    model(x)  # what is kept from now on must not get in the way
    batch = {"x": {0: torch.export.Dim("batch")}}
    exported = torch.export.export(model, (x,), dynamic_shapes=batch)
    assert not any("liere" in str(node.target) for node in exported.graph.nodes)
    assert_same(exported.module()(more), model(more))
    assert_same(torch.jit.trace(model, (x,), check_trace=False)(more), model(more))
print("agreed")
"""
)
COMPILE = (
    START
    + """
    model.train()
    compiled = torch.compile(model, backend="BACKEND", fullgraph=True)
    # A second size fails in torch for NaFlexVit as timm has it, too.
    for grid in (GRID,) if family.is_flexible else (GRID, OTHER_GRID):
        x = images(family, grid)
        losses = []
        for run in (model, compiled):
            torch.manual_seed(0)  # some move positions at random in training
            losses.append(run(x).square().mean())
        assert_same(losses[1], losses[0])
        gradients = [torch.autograd.grad(loss, list(model.parameters())) for loss in losses]
        for eager, traced in zip(*gradients, strict=True):
            torch.testing.assert_close(traced, eager, rtol=1e-3, atol=1e-4 * float(eager.abs().max()))
    torch.compiler.reset()
print("agreed")
"""
)
CASES = [
    "vit_small_patch16_224 identity",
    "eva02_base_patch14_224 with separate q, k and v identity",
    "vit_small_patch16_rope_mixed_224 rope",
    "vit_small_patch16_dinov3 rope",
    "naflexvit_base_patch16_gap identity",
]


dynamic_batch = pytest.mark.skipif(
    torch.__version__.startswith("2.7"), reason="torch 2.7 cannot export a conversion with a dynamic batch"
)


def run(script: str, *cases: str) -> str:
    done = subprocess.run([sys.executable, "-c", script, *cases], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@dynamic_batch
def test_a_model_is_exported():
    assert "agreed" in run(EXPORT, CASES[0])


@pytest.mark.slow
@dynamic_batch
def test_others_are_exported():
    assert "agreed" in run(EXPORT, *CASES[1:])


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.id)
def test_every_model_is_traced_by_the_compiler(family):
    case = f"{family.id} {'rope' if family.rope else 'identity'}"
    assert "agreed" in run(COMPILE.replace("BACKEND", "aot_eager"), case)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_models_are_compiled(case):
    assert "agreed" in run(COMPILE.replace("BACKEND", "inductor"), case)
