"""What people do with Hugging Face models works with converted ones: copies, checkpoints, threads, masked videos."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import transformers

from liere.encodings.layer_rotation import rotate_layer
from liere.integrations.transformers import convert
from liere.integrations.transformers.families import two
from liere.integrations.transformers.models import RotatedTower, tower_of
from tests.integrations.transformers.families import (
    FAMILIES,
    IMAGE,
    SMALL,
    STARTS,
    TOWERS,
    assert_same,
    converted,
    difference,
    inputs,
    run,
    with_random_generators,
)

by_id = {"ids": lambda value: getattr(value, "id", value)}


@pytest.mark.parametrize(("family", "start"), STARTS, **by_id)
def test_copies_and_pickles(family, start):
    rotated = with_random_generators(converted(family, start)[1])
    given = inputs(family)
    with torch.no_grad():
        expected = run(rotated, given)
        for other in (copy.deepcopy(rotated), pickle.loads(pickle.dumps(rotated))):
            assert type(other) is type(rotated)
            assert torch.equal(run(other, given), expected)
            other.encoding.generators.zero_()
            assert difference(run(other, given), expected) > 1e-2
        assert torch.equal(run(rotated, given), expected)


@pytest.mark.parametrize(("family", "start"), TOWERS, **by_id)
def test_gradient_checkpointing(family, start):
    rotated = with_random_generators(converted(family, start)[1]).train()
    checkpointed = copy.deepcopy(rotated)
    checkpointed.activation_checkpointing_enable()
    for model in (rotated, checkpointed):
        torch.manual_seed(5)  # DINOv3 moves positions at random
        run(model, inputs(family)).square().mean().backward()
    for (name, ours), theirs in zip(checkpointed.named_parameters(), rotated.parameters(), strict=True):
        assert (ours.grad is None) == (theirs.grad is None), name
        if theirs.grad is not None:
            torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-6)


def test_threads():
    family = FAMILIES[0]
    rotated = with_random_generators(converted(family)[1])
    batches = [inputs(family, other=number % 2 == 1) for number in range(8)]
    with torch.no_grad():
        expected = [run(rotated, batch) for batch in batches]

    def work(batch):
        with torch.no_grad():
            return run(rotated, batch)

    with ThreadPoolExecutor(4) as pool:
        for found, right in zip(pool.map(work, batches), expected, strict=True):
            assert_same(found, right)


def test_masked_videos_keep_their_positions():
    family = next(family for family in FAMILIES if family.label == "VideoMAE")
    model, rotated = converted(family)
    mask = torch.zeros(2, 18, dtype=torch.bool)
    mask[0, [0, 3, 7]] = mask[1, [1, 16, 17]] = True
    given = inputs(family) | {"bool_masked_pos": mask}
    with torch.no_grad():
        assert_same(run(rotated, given), run(model, given))
        with_random_generators(rotated)
        both = run(rotated, given)
        for number in range(2):  # alone, without a batch to share
            one = {name: value[number : number + 1] for name, value in given.items()}
            assert_same(run(rotated, one), both[number : number + 1])
        positions = rotated._grid_positions(given["pixel_values"])
        kept = rotated._at(positions[~mask[1]])
        carried = rotated._at(positions.expand(2, -1, -1)[~mask].reshape(2, 15, 3))
        q = torch.randn(2, rotated.config.num_attention_heads, 15, rotated.encoding.head_dim)
        expected = rotate_layer(q, q, kept.layers[1], 0)[0]
        torch.testing.assert_close(rotate_layer(q, q, carried.layers[1], 0)[0][1], expected[1], rtol=1e-5, atol=1e-6)


def test_models_of_images_and_text():
    text = {**SMALL, "vocab_size": 20, "max_position_embeddings": 8}
    config = transformers.CLIPConfig(vision_config={**SMALL, **IMAGE}, text_config=text, projection_dim=16)
    torch.manual_seed(0)
    model = transformers.CLIPModel(config).eval()
    rotated = convert(model)
    assert isinstance(tower_of(rotated), RotatedTower)
    given = {"input_ids": torch.tensor([[1, 2, 19]]), **inputs(FAMILIES[0])}
    with torch.no_grad():
        assert_same(rotated(**given).logits_per_image, model(**given).logits_per_image)


def test_sizes_have_two_sides():
    assert (two(8), two((4, 8))) == ((8, 8), (4, 8))


COMPILE = """
import sys, warnings
warnings.simplefilter("ignore")
import torch
from liere.integrations.transformers import convert
from tests.integrations.transformers.families import *
torch.set_num_threads(1)
for family, start in TOWERS:
    if family.id + " " + start not in sys.argv[1:]:
        continue
    # In eval mode: DINOv3 moves positions at random in training.
    model = with_random_generators(convert(make(family), "liere8", start))
    given = inputs(family)
    losses = [run(each, given).square().mean() for each in (model, torch.compile(model, backend="BACKEND"))]
    assert_same(losses[1], losses[0])
    gradients = [torch.autograd.grad(loss, model.encoding.generators)[0] for loss in losses]
    assert_same(gradients[1], gradients[0], 1e-4)
    torch.compiler.reset()
    print(family.id, start, "agreed", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_models_are_compiled(backend):
    cases = [f"{family.id} {start}" for family, start in TOWERS]
    script = [sys.executable, "-c", COMPILE.replace("BACKEND", backend)]
    done = subprocess.run([*script, *cases], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("agreed") == len(cases)
