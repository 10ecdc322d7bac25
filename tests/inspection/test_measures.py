from __future__ import annotations

import json

import pytest
import torch

from liere import LieRE
from liere.encodings.visionllama import VisionLLaMA
from liere.generators import commutator_norm
from liere.inspection.measures import basis_pattern, inspect_model, relativity_errors
from tests.models import ENCODINGS, ROTARY, small_model


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_numbers_of_every_encoding(encoding):
    model = small_model(encoding).train()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    numbers = inspect_model(model)
    json.dumps(numbers.as_dict())
    assert model.training
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert numbers.parameters == sum(p.numel() for p in model.parameters())
    assert len(numbers.layers) == 3
    assert all(layer.qkv_gradient > 0 for layer in numbers.layers)
    assert all((layer.angles is not None) == (encoding in ROTARY) for layer in numbers.layers)
    learned = encoding in ("rope_mixed", "liere8", "liere5", "liere")
    for layer in numbers.layers:
        assert (layer.generator_gradient is not None) == learned
        assert not learned or layer.generator_gradient > 0


def test_only_block_2_and_fixed_axes_commute():
    for encoding in ROTARY:
        for layer in inspect_model(small_model(encoding)).layers:
            commutes = encoding in ("rope_mixed", "visionllama")
            assert (max(layer.commutator) == 0) == commutes
            assert (layer.relativity < 1e-12) == commutes


def test_gradients_are_those_of_autograd():
    model = small_model("liere8")
    numbers = inspect_model(model, seed=3)
    x = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(3))
    model(x).square().sum().backward()
    for layer, block, expected in zip(numbers.layers, model.blocks, model.encoding.generators.grad, strict=True):
        assert layer.generator_gradient == pytest.approx(expected.norm().item(), rel=1e-5)
        assert layer.qkv_gradient == pytest.approx(block.attention.qkv.weight.grad.norm().item(), rel=1e-5)


def test_shared_layers_have_one_gradient():
    numbers = inspect_model(small_model("liere8", share_layers=True))
    assert all(layer.generator_gradient is None for layer in numbers.layers)
    assert numbers.encoding_gradient > 0


def test_angles_of_block_2_are_the_generators():
    model = small_model("rope_mixed")
    angles = inspect_model(model).layers[1].angles
    for axis in range(2):
        expected = model.encoding.generators[1, axis].flatten().abs()
        torch.testing.assert_close(torch.tensor(sorted(angles[axis])), expected.sort()[0])


def test_one_axis_has_nothing_to_commute():
    numbers = inspect_model(small_model("liere8", image_size=(16,), patch_size=(4,)))
    assert all(layer.commutator is None for layer in numbers.layers)


def test_relativity_error_by_hand():
    rope = LieRE(2, 6, num_heads=2, block_size=3, dtype=torch.float64)
    x, y = torch.rand(2, 4, 2, dtype=torch.float64).unbind()
    found = relativity_errors(rope, x, y)
    for head in range(2):
        for pair in range(4):
            R = [torch.block_diag(*rope.rotations(p[pair : pair + 1])[head, 0]) for p in (x, y, y - x)]
            expected = (R[0].T @ R[1] - R[2]).norm() / R[0].norm()
            torch.testing.assert_close(found[head, pair], expected)


def test_patterns():
    dense = basis_pattern(LieRE(2, 4, block_size=4))
    assert torch.equal(dense, 2 - 2 * torch.eye(4).long())
    fixed = basis_pattern(VisionLLaMA(2, 6))
    assert torch.equal(
        fixed,
        torch.tensor([[0, 1, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 1, 0, 0, 0]] + [[0] * 6] * 2),
    )


def test_dropout_does_not_disturb_the_numbers():
    model = small_model("liere8", dropout=0.5).train()
    assert inspect_model(model) == inspect_model(model)


def test_each_layer_has_its_own_numbers():
    layers = inspect_model(small_model("liere8")).layers
    assert len({layer.relativity for layer in layers}) == 3
    assert len({tuple(layer.commutator) for layer in layers}) == 3


def test_commutators_of_three_axes_are_averaged_over_pairs():
    model = small_model("liere", image_size=(4, 8, 8), patch_size=(2, 4, 4))
    a, b, c = model.encoding.skew_generators(1).unbind(0)
    expected = (commutator_norm(a, b) + commutator_norm(a, c) + commutator_norm(b, c)).mean(-1) / 3
    torch.testing.assert_close(torch.tensor(inspect_model(model).layers[1].commutator), expected.detach())


def test_distances_and_rotated_dimensions():
    numbers = inspect_model(small_model("liere5"))
    assert numbers.rotated_dims == 20
    distances, errors = zip(*numbers.relativity_by_distance, strict=True)
    assert max(distances) <= 2**0.5 + 1e-9
    assert 0 in distances
    assert all(error < 1e-12 for distance, error in numbers.relativity_by_distance if distance == 0)
    assert max(errors) > 0.1


def test_frozen_parameters_have_no_gradient():
    model = small_model("liere8")
    model.encoding.requires_grad_(False)
    model.blocks.requires_grad_(False)
    numbers = inspect_model(model)
    assert numbers.encoding_gradient is None
    assert all(layer.generator_gradient is None and layer.qkv_gradient is None for layer in numbers.layers)


@pytest.mark.parametrize("options", [{"init_scale": 0.0}, {"share_layers": True}])
def test_unusual_encodings_are_drawn(tmp_path, options):
    pytest.importorskip("matplotlib")
    from liere.inspection.overview_figure import draw_inspection

    model = small_model("liere8", **options)
    model.blocks.requires_grad_(False)
    draw_inspection(model, inspect_model(model), "title", tmp_path / "picture.png")
    assert (tmp_path / "picture.png").exists()


def test_runs_where_gradients_are_off():
    with torch.no_grad():
        assert inspect_model(small_model("liere8")).layers[2].generator_gradient > 0


def test_nothing_turns_along_an_axis_of_one_token():
    angles = inspect_model(small_model("liere8", image_size=(16, 4))).layers[0].angles
    assert max(angles[0]) > 1
    assert max(angles[1]) == 0
