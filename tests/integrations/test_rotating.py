"""Rotating the queries and keys of other libraries' attention."""

from __future__ import annotations

import torch

from liere import LieRE, grid_positions
from liere.integrations.rotating import interleave, turn
from tests.numerics import assert_close, rotate_slowly


def test_queries_and_keys_are_rotated_behind_the_prefix():
    rope = LieRE(2, 8, num_heads=2).double()
    q, k = torch.randn(2, 3, 2, 1 + 6, 8, dtype=torch.float64).unbind()
    R = rope.rotations(grid_positions((2, 3), dtype=torch.float64)).detach()
    for x, found, lazy in zip((q, k), turn(q, k, R, 1), turn(q, k, lambda: R, 1), strict=True):
        assert_close(found, rotate_slowly(x, R, 1), 1e-13)
        assert torch.equal(found, lazy)


def test_halves_are_interleaved_first_which_leaves_scores_alone():
    q, k = torch.randn(2, 1, 1, 4, 6, dtype=torch.float64).unbind()
    found_q, found_k = turn(q, k, None, 0, halves=True)
    assert torch.equal(found_q, interleave(q))
    assert_close(found_q @ found_k.mT, q @ k.mT, 1e-14)
