"""Rotated queries and keys of other libraries' attention."""

from __future__ import annotations

import pytest
import torch

from liere.integrations.rotating import interleave, turn


@pytest.mark.parametrize("halves", [False, True])
def test_queries_and_keys_are_turned_alike(halves):
    torch.manual_seed(0)
    q, k = torch.randn(2, 1, 2, 4, 8, dtype=torch.float64, requires_grad=True).unbind()
    turns = torch.linalg.qr(torch.randn(2, 3, 2, 4, 4, dtype=torch.float64)).Q
    found = turn(q, k, turns, 1, halves=halves)
    for x, rotated in zip((q, k), found, strict=True):
        x = interleave(x) if halves else x
        assert torch.equal(rotated[:, :, 0], x[:, :, 0])
        for head in range(2):
            for token in range(3):
                expected = torch.cat(
                    [m @ part for m, part in zip(turns[head, token], x[0, head, 1 + token].split(4), strict=True)]
                )
                torch.testing.assert_close(rotated[0, head, 1 + token], expected)
    lazily = turn(q, k, lambda: turns, 1, halves=halves)
    gradients = [torch.autograd.grad(a.sin().sum() + b.cos().sum(), [q, k]) for a, b in (found, lazily)]
    torch.testing.assert_close(*gradients)


def test_without_rotations_only_the_order_changes():
    q, k = torch.arange(16.0).reshape(2, 1, 1, 1, 8).unbind()
    assert all(a is b for a, b in zip(turn(q, k, None, 0), (q, k), strict=True))
    assert turn(q, k, None, 0, halves=True)[0].flatten().tolist() == [0, 4, 1, 5, 2, 6, 3, 7]
