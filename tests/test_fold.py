from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from liere import LieRE, fold_1d
from liere.encodings.visionllama import VisionLLaMA
from tests.numerics import assert_close, seeds


def plain_rope(x: torch.Tensor, positions: torch.Tensor, frequencies: torch.Tensor) -> torch.Tensor:
    """RoPE on interleaved pairs, as complex multiplication; an odd last dimension is left alone."""
    pairs = x[..., : x.shape[-1] // 2 * 2].unflatten(-1, (-1, 2)).contiguous()
    turn = torch.polar(torch.ones_like(frequencies[:, None]), positions * frequencies[:, None])
    turned = torch.view_as_real(torch.view_as_complex(pairs) * turn).flatten(-2)
    return torch.cat([turned, x[..., turned.shape[-1] :]], dim=-1)


@given(
    head_dim=st.integers(2, 12),
    data=st.data(),
    heads=st.integers(1, 3),
    share_heads=st.booleans(),
    bias=st.booleans(),
    seed=seeds,
)
def test_scores_are_those_of_plain_rope(head_dim, data, heads, share_heads, bias, seed):
    torch.manual_seed(seed)
    block_size = data.draw(st.integers(2, head_dim))
    rope = LieRE(
        1,
        head_dim,
        num_heads=heads,
        depth=2,
        block_size=block_size,
        share_heads=share_heads,
        dtype=torch.float64,
    )
    to_q, to_k = (torch.nn.Linear(10, heads * head_dim, bias=bias, dtype=torch.float64) for _ in range(2))
    x, positions = torch.randn(2, 7, 10, dtype=torch.float64), 3 * torch.randn(7, 1, dtype=torch.float64)

    def split(y: torch.Tensor) -> torch.Tensor:
        return y.unflatten(-1, (heads, head_dim)).transpose(1, 2)

    q, k = rope(split(to_q(x)), split(to_k(x)), positions, layer=1)
    folded = fold_1d(rope, to_q.weight, to_k.weight, to_q.bias, to_k.bias, layer=1)
    plain_q = split(torch.nn.functional.linear(x, folded.q_weight, folded.q_bias))
    plain_k = split(torch.nn.functional.linear(x, folded.k_weight, folded.k_bias))
    plain_q, plain_k = (plain_rope(y, positions, folded.frequencies) for y in (plain_q, plain_k))
    assert_close(plain_q @ plain_k.mT, q @ k.mT, 1e-11)
    assert folded.frequencies.shape == (heads, head_dim // 2)
    assert (folded.q_bias is None) == (not bias)


def test_one_rotation_for_all_heads_and_fixed_encodings():
    weight = torch.randn(3 * 8, 10, dtype=torch.float64)
    rope, x, positions = LieRE(1, 8).double(), torch.randn(7, 10).double(), torch.randn(7, 1).double()
    folded = fold_1d(rope, weight, weight)
    heads = (x @ weight.T).unflatten(-1, (3, 8)).transpose(0, 1)[None]
    q, k = rope(heads, heads, positions)
    plain = (x @ folded.q_weight.T).unflatten(-1, (3, 8)).transpose(0, 1)[None]
    plain = plain_rope(plain, positions, folded.frequencies)
    assert_close(plain @ plain.mT, q @ k.mT, 1e-11)
    assert fold_1d(rope, weight.half(), weight.half()).frequencies.dtype == torch.float32
    frequencies = fold_1d(VisionLLaMA(1, 8), weight, weight).frequencies[0]
    assert_close(frequencies, torch.exp(-4 * torch.linspace(0, 1, 4, dtype=torch.float64)), 1e-14)


def test_block_2_keeps_its_frequencies():
    rope = LieRE(1, 8, block_size=2)
    frequencies = fold_1d(rope, torch.eye(8), torch.eye(8)).frequencies
    assert_close(frequencies[0], rope.generators.flatten().sort(descending=True)[0], 1e-5)


@pytest.mark.parametrize(
    ("rope", "rows", "message"),
    [
        (LieRE(2, 8), 8, "rope has ndim=2, but only an encoding with ndim=1 can be folded"),
        (LieRE(1, 8, num_heads=2), 24, "q_weight has 24 rows, but 2 heads of 8 need 16"),
        (LieRE(1, 8), 12, "q_weight has 12 rows"),
    ],
)
@pytest.mark.usefixtures("no_shape_checks")
def test_what_cannot_be_folded_is_refused(rope, rows, message):
    with pytest.raises(TypeError, match="rope must be a rotary encoding such as LieRE, got Linear"):
        fold_1d(torch.nn.Linear(2, 2), torch.zeros(2, 2), torch.zeros(2, 2))
    weight = torch.zeros(rows, 10)
    with pytest.raises(ValueError, match=message):
        fold_1d(rope, weight, weight)
