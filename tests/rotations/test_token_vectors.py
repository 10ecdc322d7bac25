"""Vectors of tokens: to the memory of a chunk and back."""

from __future__ import annotations

import pytest
import torch

from liere.rotations.token_layouts import token_layout_for
from liere.rotations.token_vectors import TokenVectors


@pytest.mark.parametrize("size", [4, 16])
@pytest.mark.parametrize("own", [False, True])
def test_what_is_loaded_and_stored_is_the_same(size, own):
    batch, prefix, positions, heads, blocks, rest = 3, 1, 5, 2, 2, 3
    xs = list(torch.randn(2, batch, prefix + positions, heads, blocks * size + rest).unbind())
    coordinates = torch.rand(batch if own else 1, positions, 2)
    vectors = TokenVectors(xs, coordinates, torch.randn(10, heads, blocks, size, size), prefix)
    outs = [vectors.unrotated(x) for x in xs]
    layout = token_layout_for(size)
    count = batch * positions if own else positions
    for tokens in torch.randperm(count).split(4):  # any order, the last chunk shorter
        vectors.store(layout, vectors.load(layout, "test", xs, tokens), outs, tokens)
    for x, out in zip(xs, outs, strict=True):
        assert torch.equal(x, out)
