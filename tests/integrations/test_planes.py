from __future__ import annotations

import pytest
import torch

from liere import LieRE, create_encoding
from liere.encodings import TransformerShape
from liere.integrations.planes import set_planes, widen_encoding

POSITIONS = torch.tensor([[0.0, 0.0], [1.0, 2.0], [-3.0, 0.5]])


@pytest.mark.parametrize("block_size", [2, 4, 8, 16])
def test_planes_turn_as_rope_does(block_size):
    rope = LieRE(2, 16, num_heads=3, depth=2, block_size=block_size)
    frequencies = torch.randn(2, 2, 3, 8)
    set_planes(rope, frequencies)
    x = torch.randn(1, 3, 3, 16)
    for layer in range(2):
        q, _ = rope(x, x, POSITIONS, layer=layer)
        angles = torch.einsum("nd,dhi->hni", POSITIONS, frequencies[layer])
        even, odd = x[..., ::2], x[..., 1::2]
        expected = torch.stack([even * angles.cos() - odd * angles.sin(), odd * angles.cos() + even * angles.sin()], -1)
        torch.testing.assert_close(q, expected.flatten(-2), atol=1e-5, rtol=0)


def test_one_set_of_frequencies_serves_all_layers_and_heads():
    rope = LieRE(2, 8, num_heads=3, depth=2, block_size=4)
    set_planes(rope, torch.randn(1, 2, 1, 4))
    assert torch.equal(rope.generators, rope.generators[:1, :, :1].expand_as(rope.generators))


@pytest.mark.parametrize(
    ("options", "frequencies", "message"),
    [
        ({"block_size": 3}, (1, 2, 1, 8), "blocks of 3 do not hold the planes of a head of 16 dimensions: .*'liere2'"),
        ({"block_size": 6}, (1, 2, 1, 8), "blocks of 6 do not hold .* like 'liere4'"),
        ({"block_size": 4}, (1, 2, 1, 7), "frequencies of 7 planes do not fit a head of 16"),
        ({"block_size": 4, "depth": 2, "share_layers": True}, (2, 2, 1, 8), "build it without share_layers"),
        ({"block_size": 4, "num_heads": 2, "share_heads": True}, (1, 2, 2, 8), "build it without share_heads"),
    ],
)
def test_what_does_not_fit_is_an_error(options, frequencies, message):
    with pytest.raises(ValueError, match=message):
        set_planes(LieRE(2, 16, **options), torch.zeros(frequencies))


@pytest.mark.parametrize(("size", "wide"), [(2, 4), (2, 16), (4, 8), (3, 6), (8, 8), (8, 16)])
@pytest.mark.parametrize("share", [False, True])
def test_wider_blocks_rotate_the_same(size, wide, share):
    head_dim = 18 if size == 3 else 16
    options = {"num_heads": 2, "depth": 2, "share_heads": share, "share_layers": share, "recompute": share}
    rope = LieRE(2, head_dim, block_size=size, init_scale=1.0, **options).eval()
    widened = widen_encoding(rope, wide)
    assert (widened.block_size, widened.share_layers, widened.recompute) == (wide, share, share)
    assert not widened.training
    x = torch.randn(1, 2, 3, head_dim)
    for layer in range(2):
        (q, _), (wide_q, _) = (one(x, x, POSITIONS, layer=layer) for one in (rope, widened))
        torch.testing.assert_close(wide_q, q, atol=2e-5, rtol=0)


def test_rope_mixed_widens_to_liere():
    shape = TransformerShape((4, 4), 32, 2, 3)
    widened = widen_encoding(create_encoding("rope_mixed", shape), 8)
    assert type(widened) is LieRE
    widened.check_fit(shape)


def test_what_cannot_be_widened_is_an_error(no_shape_checks):
    with pytest.raises(ValueError, match="block must be a multiple of 4 that divides 16, got 12: choose from 4, 8, 16"):
        widen_encoding(LieRE(2, 16, block_size=4), 12)
    with pytest.raises(TypeError, match="block must be an int"):
        widen_encoding(LieRE(2, 16, block_size=4), 8.0)
    with pytest.raises(TypeError, match="only LieRE encodings have blocks to widen, got VisionLLaMA"):
        widen_encoding(create_encoding("visionllama", TransformerShape((4, 4), 32, 2, 3)), 8)
