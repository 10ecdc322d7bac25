"""Rotary encodings in attention of your own: missing positions, padding, key caches, units, low precision."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from liere import LieRE, apply_rotations, grid_positions
from tests.numerics import assert_close, exp_by_eigenvectors, rotate_slowly, seeds, tolerance


class TestQueriesWithoutPositions:
    @pytest.mark.parametrize("batch", [(), (3,)])
    def test_they_are_left_alone(self, batch):
        rope = LieRE(2, 8, num_heads=2, depth=2).double()
        q, k, positions = (torch.randn(*s).double() for s in [(3, 2, 4, 8), (3, 2, 1 + 9, 8), (*batch, 9, 2)])
        found_q, found_k = rope(q, k, None, positions, layer=1, k_num_prefix_tokens=1)
        assert found_q is q
        expected = rotate_slowly(k, rope.rotations(positions, 1).detach(), 1)
        assert_close(found_k, expected, 1e-13)
        _, both = rope(q, k, torch.rand(4, 2), positions, layer=1, k_num_prefix_tokens=1)
        assert torch.equal(found_k, both)

    def test_the_opposite_case_has_a_recipe(self):
        rope = LieRE(2, 8, num_heads=2)
        q, k, positions = torch.randn(3, 2, 9, 8), torch.randn(3, 2, 5, 8), torch.rand(9, 2)
        expected, _ = rope(q, k, positions, torch.rand(5, 2))
        assert_close(apply_rotations(q, rope.rotations(positions)), expected, 1e-6)

    @pytest.mark.usefixtures("no_shape_checks")
    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({}, TypeError, "positions and k_positions are both None: pass the positions of the tokens"),
            ({"k_positions": torch.rand(4, 2)}, ValueError, "k has 5 tokens, .* there are 4 positions"),
            ({"k_positions": torch.rand(5, 3)}, ValueError, r"k_positions has shape \[5, 3\]"),
            ({"k_positions": torch.rand(5, 2), "layer": 7}, ValueError, "layer must be between 0 and 0, got 7"),
        ],
    )
    def test_errors(self, options, error, message):
        x = torch.zeros(1, 2, 5, 8)
        with pytest.raises(error, match=message):
            LieRE(2, 8, num_heads=2)(x, x, None, **options)


@given(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4), size=st.sampled_from([2, 4, 8]), seed=seeds)
def test_padded_tokens_change_nothing(lengths, size, seed):
    torch.manual_seed(seed)
    rope = LieRE(3, 8, num_heads=2, block_size=size).double()
    longest = max(lengths)
    q, k, v = torch.randn(3, len(lengths), 2, longest, 8, dtype=torch.float64).unbind()
    valid = torch.arange(longest) < torch.tensor(lengths)[:, None]
    positions = torch.randn(len(lengths), longest, 3, dtype=torch.float64) * valid[..., None]
    positions.requires_grad_()
    out = F.scaled_dot_product_attention(*rope(q, k, positions), v, attn_mask=valid[:, None, None])
    (out.square() * valid[:, None, :, None]).sum().backward()
    assert not positions.grad[~valid].any()
    for n, length in enumerate(lengths):
        part = [x[n : n + 1, :, :length] for x in (q, k, v)]
        alone = F.scaled_dot_product_attention(*rope(*part[:2], positions[n, :length]), part[2])
        assert_close(out[n, :, :length], alone[0], 1e-12)


class Decoder(torch.nn.Module):
    """Two causal layers over one axis, with or without a cache of rotated keys."""

    def __init__(self, block_size: int) -> None:
        super().__init__()
        self.rope = LieRE(1, 8, num_heads=2, depth=2, block_size=block_size)
        self.qkv = torch.nn.ModuleList(torch.nn.Linear(16, 48) for _ in range(2))

    def forward(self, x: Tensor, positions: Tensor, caches: list[tuple[Tensor, Tensor]] | None = None) -> Tensor:
        for layer, project in enumerate(self.qkv):
            q, k, v = project(x).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
            q, k = self.rope(q, k, positions, layer=layer)
            if caches is not None:
                if len(caches) > layer:
                    k, v = (torch.cat(pair, dim=2) for pair in zip(caches[layer], (k, v), strict=True))
                caches[layer : layer + 1] = [(k, v)]
            causal = q.shape[2] > 1
            x = x + F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).flatten(2)
        return x


@pytest.mark.parametrize("block_size", [2, 8])
def test_a_decoder_with_a_cache_of_rotated_keys_agrees_with_the_full_pass(block_size):
    model, x, positions = Decoder(block_size).eval(), torch.randn(2, 7, 16), torch.arange(7.0)[:, None] / 7
    with torch.no_grad():
        full = model(x, positions)
        caches: list[tuple[Tensor, Tensor]] = []
        prompt = model(x[:, :3], positions[:3], caches)
        steps = [model(x[:, t : t + 1], positions[t : t + 1], caches) for t in range(3, 7)]
    assert_close(torch.cat([prompt, *steps], dim=1), full, 1e-5)


def test_rotations_made_once_serve_single_tokens():
    rope, positions = LieRE(1, 8, num_heads=2), torch.arange(7.0)[:, None] / 7
    x = torch.randn(2, 2, 7, 8)
    table = rope.rotations(positions)
    full, _ = rope(x, x, positions)
    for t in range(7):
        assert_close(apply_rotations(x[:, :, t : t + 1], table[:, t : t + 1]), full[:, :, t : t + 1], 1e-6)


@given(unit=st.sampled_from([1e-3, 0.1, 25.0, 1e3]), size=st.sampled_from([2, 8]), seed=seeds)
def test_units_of_positions_are_those_of_the_generators(unit, size, seed):
    torch.manual_seed(seed)
    rope = LieRE(2, 8, block_size=size).double()
    positions = torch.rand(5, 2, dtype=torch.float64)
    expected = rope.rotations(positions)
    with torch.no_grad():
        rope.generators.div_(unit)
    assert_close(rope.rotations(positions * unit), expected, 1e-11)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [2, 3, 8, 16])
def test_autocast_keeps_phases_of_far_positions_in_fp32(size, dtype):
    """Angles of thousands of radians: half precision would leave nothing of them."""
    torch.manual_seed(0)
    rope = LieRE(2, 16, num_heads=2, block_size=size)
    positions = 1e3 * torch.rand(6, 2)
    q, k = torch.randn(2, 1, 2, 6, 16).unbind()
    plain = rope.rotations(positions)
    with torch.autocast("cpu", dtype=dtype):
        assert torch.equal(rope.rotations(positions), plain)
        found = rope(q.to(dtype), k.to(dtype), positions)
    X = torch.einsum("td,dhnij->htnij", positions.double(), rope.skew_generators().double())
    exact = exp_by_eigenvectors(X.detach())
    norm = torch.linalg.matrix_norm(X, ord=2).max().item()
    assert_close(plain, exact, tolerance(torch.float32, norm))
    for rotated, x in zip(found, (q, k), strict=True):
        assert rotated.dtype == dtype
        expected = rotate_slowly(x.to(dtype).double(), exact, 0)
        assert_close(rotated, expected, tolerance(torch.float32, norm) + 4 * size**0.5 * torch.finfo(dtype).eps * 4)


def test_gradients_of_positions_agree_with_differences():
    rope = LieRE(2, 8, num_heads=1, block_size=4).double()
    q, k = torch.randn(2, 2, 1, 2, 8, dtype=torch.float64).unbind()
    positions = torch.rand(2, 2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda p: rope(q, k, p), (positions,))
    assert torch.autograd.gradcheck(lambda p: rope(q, k, None, p)[1], (positions,))


def test_one_set_of_positions_for_all_is_a_batch_of_the_same():
    rope = LieRE(2, 8, num_heads=2).double()
    q, k = torch.randn(2, 3, 2, 9, 8, dtype=torch.float64).unbind()
    positions = grid_positions((3, 3), dtype=torch.float64)
    for a, b in zip(rope(q, k, positions), rope(q, k, positions.expand(3, -1, -1)), strict=True):
        assert_close(a, b, 1e-13)
