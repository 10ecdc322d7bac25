"""Whatever an encoding yields for a layer rotates its queries and keys in the same way."""

from __future__ import annotations

import pytest
import torch

from liere import LieRE
from liere.encodings.contract import StreamedRotations
from liere.encodings.layer_rotation import rotate_layer
from tests.models import small_model
from tests.numerics import assert_close


@pytest.mark.parametrize("prefix", [0, 1])
@pytest.mark.parametrize("block_size", [2, 4, 8])
def test_every_form_gives_the_same(block_size, prefix):
    rope = LieRE(2, 8, num_heads=2, block_size=block_size, dtype=torch.float64)
    positions = torch.rand(3, 5, 2, dtype=torch.float64, requires_grad=True)
    q, k = torch.randn(2, 3, 2, 5 + prefix, 8, dtype=torch.float64, requires_grad=True).unbind()
    rotations = rope.rotations(positions)
    forms = [rotations, lambda: rope.rotations(positions), StreamedRotations(positions, rope.skew_generators())]
    sources = [rope.generators, positions, q, k]
    results = []
    for form in forms:
        rotated = rotate_layer(q, k, form, prefix)
        loss = sum((x * x.sin()).sum() for x in rotated)
        results.append([*rotated, *torch.autograd.grad(loss, sources, retain_graph=True)])
    for found in results[1:]:
        for one, expected in zip(found, results[0], strict=True):
            assert_close(one, expected, 1e-11)
    assert all(x is y for x, y in zip(rotate_layer(q, k, None, prefix), (q, k), strict=True))


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("encoding", ["rope_mixed", "liere4", "liere8"])
def test_a_model_with_positions_of_each_example_is_the_same_as_one_example_at_a_time(encoding, train):
    model = small_model(encoding).double().train(train)
    images = torch.randn(3, 3, 16, 16, dtype=torch.float64)
    positions = torch.rand(3, 16, 2, dtype=torch.float64)
    results = []
    for logits in (
        model(images, positions=positions),
        torch.cat([model(images[n : n + 1], positions=positions[n]) for n in range(3)]),
    ):
        results.append([logits, *torch.autograd.grad(logits.square().sum(), list(model.parameters()))])
    for found, expected in zip(*results, strict=True):
        assert_close(found, expected, 1e-10)


def test_rotations_of_each_example_are_not_made_as_a_whole():
    encoding = small_model("liere8").encoding
    many, one = torch.rand(3, 16, 2), torch.rand(16, 2)
    assert all(isinstance(layer, StreamedRotations) for layer in encoding.layer_rotations(many, 3))
    assert all(isinstance(layer, torch.Tensor) for layer in encoding.layer_rotations(one, 3))
    shared = LieRE(2, 8, depth=3, share_layers=True).layer_rotations(many, 3)
    assert len({id(layer) for layer in shared}) == 1
