"""Rotary encodings called directly on queries and keys."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from liere import LieRE, apply_rotations, grid_positions
from tests.models import SHAPE
from tests.numerics import assert_close, rotate_slowly, seeds


@given(
    ndim=st.integers(1, 3),
    size=st.sampled_from([2, 3, 5, 8]),
    prefix=st.integers(0, 2),
    batched=st.booleans(),
    seed=seeds,
)
def test_rotates_queries_and_keys_by_their_positions(ndim, size, prefix, batched, seed):
    torch.manual_seed(seed)
    rope = LieRE(ndim, 9, num_heads=2, depth=2, block_size=size).double()
    q, k = torch.randn(2, 3, 2, prefix + 4, 9, dtype=torch.float64).unbind()
    positions = torch.randn(*[3] * batched, 4, ndim, dtype=torch.float64)
    R = rope.rotations(positions, layer=1)
    assert R.shape == (*[3] * batched, 2, 4, 9 // size, size, size)
    found = rope(q, k, positions, layer=1, num_prefix_tokens=prefix)
    for rotated, x in zip(found, (q, k), strict=True):
        assert_close(rotated, rotate_slowly(x, R.detach(), prefix), 1e-13)


def test_batched_positions_are_those_of_each_member():
    rope = LieRE(2, 8, num_heads=2).double()
    q, k = torch.randn(2, 3, 2, 5, 8, dtype=torch.float64).unbind()
    positions = torch.randn(3, 5, 2, dtype=torch.float64)
    together = rope(q, k, positions)
    for i in range(3):
        alone = rope(q[i : i + 1], k[i : i + 1], positions[i])
        for a, b in zip(together, alone, strict=True):
            assert_close(a[i : i + 1], b, 1e-13)


def test_cross_attention():
    rope = LieRE(2, 8, num_heads=2, depth=2)
    q, k = torch.randn(3, 2, 4, 8), torch.randn(3, 2, 1 + 9, 8)
    q_positions, k_positions = torch.rand(4, 2), grid_positions((3, 3))
    for layer in (0, 1):
        rotated_q, rotated_k = rope(q, k, q_positions, k_positions, layer=layer, k_num_prefix_tokens=1)
        assert torch.equal(rotated_q, apply_rotations(q, rope.rotations(q_positions, layer)))
        assert torch.equal(rotated_k, apply_rotations(k, rope.rotations(k_positions, layer), num_prefix_tokens=1))


@given(seed=seeds, size=st.sampled_from([2, 4, 8]))
def test_permuting_tokens_with_their_positions_permutes_the_output(seed, size):
    torch.manual_seed(seed)
    rope = LieRE(3, 8, num_heads=2, block_size=size).double()
    q, k, v = torch.randn(3, 2, 2, 7, 8, dtype=torch.float64).unbind()
    positions = torch.randn(7, 3, dtype=torch.float64)

    def attend(order: torch.Tensor) -> torch.Tensor:
        rotated = rope(q[:, :, order], k[:, :, order], positions[order])
        return F.scaled_dot_product_attention(*rotated, v[:, :, order])

    order = torch.randperm(7)
    assert_close(attend(order), attend(torch.arange(7))[:, :, order], 1e-12)


def test_one_head_serves_all_and_shared_heads_serve_grouped_queries():
    q, k = torch.randn(2, 6, 5, 8), torch.randn(2, 3, 5, 8)
    positions = torch.rand(5, 2)
    for rope in (LieRE(2, 8), LieRE(2, 8, num_heads=6, share_heads=True)):
        rotated_q, rotated_k = rope(q, k, positions)
        R = rope.rotations(positions)[:1].detach()
        assert_close(rotated_q, rotate_slowly(q, R, 0), 1e-6)
        assert_close(rotated_k, rotate_slowly(k, R, 0), 1e-6)


def test_shared_rotations_are_views():
    rope = LieRE(2, 8, num_heads=6, share_heads=True)
    assert rope.rotations(torch.rand(5, 2)).stride(0) == 0


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"positions": torch.zeros(4, 2)},
            "q has 5 tokens, num_prefix_tokens=0 of them .* there are 4 positions: pass 5 as",
        ),
        ({"num_prefix_tokens": 1}, "q has 5 tokens, num_prefix_tokens=1 of them .* there are 5 positions: pass 4 as"),
        ({"k": torch.zeros(1, 2, 7, 8)}, "k has 7 tokens, .* there are 5 positions: pass 7 as"),
        ({"k_positions": torch.zeros(6, 2)}, "k has 5 tokens, .* there are 6 positions: pass 5 as"),
        ({"positions": torch.zeros(5, 3)}, r"positions has shape \[5, 3\], but this encoding has 2 axes"),
        ({"k_positions": torch.zeros(5, 1)}, r"k_positions has shape \[5, 1\], but this encoding has 2 axes"),
        ({"k_positions": torch.full((5, 2), torch.nan)}, r"k_positions\[0, 0\] is nan"),
        ({"layer": 3}, "layer must be between 0 and 0, got 3"),
        ({"layer": -1}, "layer must be between 0 and 0, got -1"),
        ({"q": torch.zeros(1, 2, 5, 6)}, "q has head_dim 6, but this encoding was built with head_dim=8"),
        ({"k": torch.zeros(1, 2, 5, 12)}, "k has head_dim 12, but this encoding was built with head_dim=8"),
        ({"k": torch.zeros(1, 1, 5, 8)}, "rotations are for 2 heads, but k has 1: .*share_heads=True"),
        (
            {"positions": torch.zeros(4, 5, 2), "q": torch.zeros(3, 2, 5, 8)},
            r"batch shape \[4\], but q has \[3\]",
        ),
    ],
)
def test_bad_input_is_refused(arguments, message):
    x = torch.zeros(1, 2, 5, 8)
    with pytest.raises(ValueError, match=message):
        LieRE(2, 8, num_heads=2)(**({"q": x, "k": x, "positions": torch.zeros(5, 2)} | arguments))


def test_rotations_are_as_precise_as_the_parameters_and_the_positions():
    rope, positions = LieRE(2, 8), torch.rand(3, 2)
    wide = LieRE(2, 8).double()
    wide.load_state_dict(rope.state_dict())
    assert wide.rotations(positions).dtype == torch.float64
    assert_close(wide.rotations(positions), rope.rotations(positions.double()), 1e-14)
    assert (wide.rotations(positions) - rope.rotations(positions)).abs().max() > 1e-9


def test_layers_that_share_generators_share_the_rotations():
    first, second = LieRE(2, 8, depth=2, share_layers=True).layer_rotations(torch.rand(3, 2), 2)
    assert first is second


def test_a_model_wants_an_encoding_for_its_heads_and_layers():
    for options in ({"num_heads": 1, "depth": 3}, {"num_heads": 3, "depth": 3}):
        with pytest.raises(ValueError, match=r"built with num_heads=.*, but the model has 2: .*share_heads=True"):
            LieRE(2, 24, **options).check_fit(SHAPE)
    with pytest.raises(ValueError, match=r"built with depth=1, but the model has 3: .*share_layers=True"):
        LieRE(2, 24, num_heads=2).check_fit(SHAPE)
    LieRE(2, 24, share_heads=True, share_layers=True).check_fit(SHAPE)


@pytest.mark.parametrize(
    ("k_tokens", "options", "message"),
    [
        (
            7,
            {},
            r"k has 7 tokens, k_num_prefix_tokens=0 of them .* there are 6 positions: pass 7 as k_positions",
        ),
        (6, {"k_num_prefix_tokens": 2}, r"k_num_prefix_tokens=2 of them .* there are 6 positions: pass 4"),
        (6, {"k_num_prefix_tokens": 7}, r"k_num_prefix_tokens must be between 0 and the 6 tokens of k, got 7"),
        (6, {"k_positions": torch.rand(3, 6, 2)}, r"k_positions have batch shape \[3\], but k has \[2\]"),
    ],
)
def test_errors_about_keys_name_the_arguments_of_keys(k_tokens, options, message):
    rope = LieRE(2, 8)
    q, k = torch.randn(2, 1, 6, 8), torch.randn(2, 1, k_tokens, 8)
    with pytest.raises(ValueError, match=message):
        rope(q, k, torch.rand(6, 2), **options)
