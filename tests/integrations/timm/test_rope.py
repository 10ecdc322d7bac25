"""RoPEs of timm, read as frequencies and a rule for positions, against the sines and cosines that timm makes."""

from __future__ import annotations

import itertools

import pytest
import torch
from timm.layers.pos_embed_sincos import (
    RotaryEmbedding,
    RotaryEmbeddingCat,
    RotaryEmbeddingDinoV3,
    RotaryEmbeddingMixed,
    RotaryEmbeddingMRope,
)

from liere.integrations.timm.rope import read_rope

SHAPES = [(3, 3), (2, 5), (7, 4), (1, 6)]
AUGMENTED = {"shift_coords": 0.5, "jitter_coords": 1.5, "rescale_coords": 2.0}


def cat_cases():
    for in_pixels, indexing, half in itertools.product([False, True], ["ij", "xy"], [False, True]):
        for options in ({}, {"grid_offset": 0.5}, {"ref_feat_shape": (4, 6)}):
            yield {"in_pixels": in_pixels, "grid_indexing": indexing, "rotate_half": half, **options}
    yield {"in_pixels": False, "grid_type": "centered", "normalize_coords": "max"}


CASES = [
    *((RotaryEmbeddingCat, {"dim": 16, **options}) for options in cat_cases()),
    *(
        (RotaryEmbeddingDinoV3, {"dim": 16, "normalize_coords": how, "grid_indexing": indexing, "rotate_half": half})
        for how, indexing, half in itertools.product(["separate", "min", "max"], ["ij", "xy"], [False, True])
    ),
    (RotaryEmbeddingDinoV3, {"dim": 16, "temperature": None, "min_period": 0.2, "max_period": 9.0, "grid_offset": 0.1}),
    *(
        (RotaryEmbeddingMixed, {"dim": 32, "depth": 3, "num_heads": 2, "grid_indexing": indexing})
        for indexing in ("xy", "ij")
    ),
    (RotaryEmbeddingMRope, {"dim": 16, "mrope_section": (2, 3, 3)}),
    (RotaryEmbeddingMRope, {"dim": 16, "mrope_section": (2, 1, 2)}),
]


def sines_and_cosines(found, positions: torch.Tensor) -> torch.Tensor:
    """Return what timm's `get_embed` returns, from frequencies: `[layers, heads, tokens, 2 * head_dim]`."""
    angles = torch.einsum("nd,ldhi->lhni", positions, found.frequencies.double())
    layout = (lambda x: torch.cat([x, x], dim=-1)) if found.halves else (lambda x: x.repeat_interleave(2, dim=-1))
    return torch.cat([layout(angles.sin()), layout(angles.cos())], dim=-1)


def assert_same(found: torch.Tensor, expected: torch.Tensor, tolerance: float) -> None:
    assert found.squeeze().shape == expected.squeeze().shape
    assert (found.squeeze() - expected.squeeze()).abs().max() < tolerance


@pytest.mark.parametrize(("cls", "options"), CASES)
def test_frequencies_and_positions_are_those_of_timm(cls, options):
    torch.manual_seed(0)
    rope = cls(**options)
    found = read_rope(rope)
    for shape in SHAPES:
        positions = found.rule.of_grid(shape, torch.device("cpu"), torch.float64)
        expected = rope.get_embed(shape).double()
        largest = float(found.frequencies.abs().max() * positions.abs().max())  # angle, which timm rounds to fp32
        assert_same(sines_and_cosines(found, positions), expected, 4 * torch.finfo(torch.float32).eps * (1 + largest))
        cells = torch.cartesian_prod(*map(torch.arange, shape)).reshape(1, -1, 2)
        torch.testing.assert_close(found.rule.of_patches(cells, torch.float64)[0], positions)


@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (RotaryEmbeddingCat, {"dim": 16, "in_pixels": False}),
        (RotaryEmbeddingCat, {"dim": 16, "in_pixels": False, "grid_indexing": "xy"}),
        (RotaryEmbeddingDinoV3, {"dim": 16}),
        (RotaryEmbeddingMixed, {"dim": 32, "depth": 3, "num_heads": 2}),
        (RotaryEmbeddingMRope, {"dim": 16, "mrope_section": (2, 3, 3)}),
    ],
)
def test_training_draws_the_same_random_numbers(cls, options):
    rope = cls(**options, **AUGMENTED).train()
    found = read_rope(rope)
    torch.manual_seed(5)
    expected = rope.get_embed((3, 4))
    torch.manual_seed(5)
    positions = found.rule.augment(found.rule.of_grid((3, 4), torch.device("cpu"), torch.float32))
    assert_same(sines_and_cosines(found, positions.double()), expected.double(), 1e-5)
    assert not torch.equal(positions, found.rule.of_grid((3, 4), torch.device("cpu"), torch.float32))


def test_unknown_kinds_are_named():
    with pytest.raises(ValueError, match="cannot read a RoPE of type RotaryEmbedding, only RotaryEmbeddingCat"):
        read_rope(RotaryEmbedding(16))
