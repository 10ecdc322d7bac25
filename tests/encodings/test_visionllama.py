from __future__ import annotations

import math

import pytest
import torch

from liere.encodings.visionllama import VisionLLaMA
from tests.numerics import assert_close


@pytest.mark.parametrize(("ndim", "head_dim"), [(1, 8), (2, 64), (3, 64), (3, 20)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_agrees_with_the_formula_entry_by_entry(ndim, head_dim, dtype):
    rope = VisionLLaMA(ndim, head_dim, num_heads=2)
    positions = torch.rand(3, ndim, dtype=dtype)
    R = rope.rotations(positions)
    pairs = head_dim // ndim // 2
    assert R.shape == (2, 3, ndim * pairs, 2, 2)
    assert R.dtype == dtype
    for token in range(3):
        for axis in range(ndim):
            for i in range(pairs):
                angle = positions[token, axis].item() * math.exp(-4 * i / max(pairs - 1, 1))
                expected = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
                expected = torch.tensor(expected, dtype=torch.float64)
                assert_close(R[1, token, axis * pairs + i], expected, 4 * torch.finfo(dtype).eps)


def test_has_nothing_to_learn_and_leaves_the_rest_alone():
    rope = VisionLLaMA(3, 20)
    assert list(rope.parameters()) == []
    q = torch.randn(1, 4, 5, 20)
    rotated, _ = rope(q, q, torch.rand(5, 3))
    assert torch.equal(rotated[..., 18:], q[..., 18:])
    assert not torch.equal(rotated[..., :18], q[..., :18])


def test_small_heads_are_refused():
    with pytest.raises(ValueError, match="ndim must be at least 1, got 0"):
        VisionLLaMA(0, 4)
    with pytest.raises(ValueError, match="head_dim must be at least 6 for 3 axes, got 4: use fewer heads"):
        VisionLLaMA(3, 4)
