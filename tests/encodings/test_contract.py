"""Properties of every encoding, including future ones."""

from __future__ import annotations

import copy

import pytest
import torch

from liere import PositionEncoding, create_encoding, grid_positions
from tests.models import ENCODINGS, SHAPE, SMALL, small_model


@pytest.mark.parametrize("name", ENCODINGS)
def test_embeds_tokens_and_rotates_layers(name):
    encoding = create_encoding(name, SHAPE)
    for grid in [(4, 4), (6, 3)]:
        positions = grid_positions(grid, reference_shape=SHAPE.grid)
        tokens = torch.randn(2, 1 + len(positions), 48)
        assert encoding.embed(tokens, positions, grid).shape == tokens.shape
        layers = list(encoding.layer_rotations(positions, 3))
        assert len(layers) == 3
        for rotations in layers:
            assert rotations is None or rotations.shape[-4] == len(positions)


@pytest.mark.parametrize("name", ENCODINGS)
def test_state_dict_survives_a_round_trip(name):
    torch.manual_seed(0)
    first, second = create_encoding(name, SHAPE), create_encoding(name, SHAPE)
    second.load_state_dict(first.state_dict())
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)
    assert repr(copy.deepcopy(first)) == repr(first)


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_parameter_of_an_encoding_gets_a_gradient(name):
    model = small_model(name)
    model(torch.randn(2, 3, 16, 16)).square().sum().backward()
    for parameter in model.encoding.parameters():
        assert parameter.grad is not None
        assert parameter.grad.abs().max() > 0


@pytest.mark.parametrize("name", sorted(set(ENCODINGS) - {"none"}))
def test_every_encoding_but_none_sees_positions(name):
    """Shuffling patches changes the logits, with mean pooling and random weights."""
    model = small_model(name, pool="mean").double()
    x = torch.randn(1, 3, 16, 16, dtype=torch.float64)
    shuffled = _swap_patches(x)
    assert (model(x) - model(shuffled)).abs().max() > 1e-6


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("change", ["shift", "stretch", "one token"])
def test_an_encoding_depends_on_the_positions_it_is_given_if_it_says_so(name, change):
    encoding = create_encoding(name, SHAPE)
    tokens, positions = torch.randn(2, 17, 48), grid_positions((4, 4))
    moved = {"shift": positions + 0.25, "stretch": positions * 1.5, "one token": positions.clone()}[change]
    moved[-1] += change == "one token"

    def results(positions):
        layers = [
            rotations() if callable(rotations) else rotations for rotations in encoding.layer_rotations(positions, 3)
        ]
        return [encoding.embed(tokens, positions, (4, 4)), *(R for R in layers if R is not None)]

    pairs = list(zip(results(positions), results(moved), strict=True))
    assert any(not torch.equal(before, after) for before, after in pairs) == encoding.has_coordinates
    assert all(torch.equal(*pair) for pair in zip(results(positions), results(positions.clone()), strict=True))


def test_encodings_of_ones_own_are_taken_to_have_coordinates():
    assert PositionEncoding.has_coordinates
    small_model(PositionEncoding(), position_shift=1.0, cls_position="center")


def test_none_does_not_see_positions():
    model = small_model("none", pool="mean").double()
    x = torch.randn(1, 3, 16, 16, dtype=torch.float64)
    torch.testing.assert_close(model(x), model(_swap_patches(x)))


def _swap_patches(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x[..., 4:8], x[..., 0:4], x[..., 8:]], dim=-1)


def test_an_encoding_object_is_used_as_it_is():
    class Mine(PositionEncoding):
        def embed(self, tokens, positions, grid):
            return tokens + positions.sum()

    mine = Mine()
    assert small_model(mine).encoding is mine


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("leire8", "unknown encoding 'leire8': did you mean 'liere8'?"),
        ("rope-mixed", "unknown encoding 'rope-mixed': did you mean 'rope_mixed'?"),
        ("Absolute", "did you mean 'absolute'?"),
        ("xyz", "unknown encoding 'xyz': choose from 'absolute'"),
        ("liere1", "block_size must be between 2 and head_dim=24, got 1"),
        ("liere25", "block_size must be between 2 and head_dim=24, got 25"),
        ("liere\u0668", "unknown encoding"),
        ("liere-8", "unknown encoding 'liere-8': did you mean 'liere8'?"),
    ],
)
def test_unknown_names_and_bad_sizes(name, message):
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        create_encoding(name, SHAPE)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "liere8",
            {"share_head": True},
            "encoding 'liere8' has no option 'share_head': did you mean 'share_heads'",
        ),
        ("liere8", {"block_size": 4}, "block_size is part of the name 'liere8'"),
        ("none", {"init_std": 1}, "encoding 'none' has no option 'init_std': it has no options"),
        ("absolute", {"share_heads": True}, "encoding 'absolute' has no option 'share_heads'"),
    ],
)
def test_unknown_options(name, options, message):
    with pytest.raises(TypeError, match=message):
        create_encoding(name, SHAPE, **options)


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize("encoding", [None, 8])
def test_encoding_must_be_a_name_or_an_object(encoding):
    with pytest.raises(TypeError, match="encoding must be a name or a PositionEncoding, got"):
        create_encoding(encoding, SHAPE)


@pytest.mark.parametrize("name", ["absolute", "sincos", "visionllama", "rope_mixed", "liere8"])
@pytest.mark.parametrize(
    "other", [{"image_size": (16, 16, 16), "patch_size": 4}, {"dim": 96}, {"heads": 4, "dim": 192}]
)
def test_an_encoding_for_another_model_is_refused(name, other):
    encoding = create_encoding(name, SHAPE)
    with pytest.raises(ValueError, match="encoding was built"):
        small_model(encoding, **(SMALL | other))
