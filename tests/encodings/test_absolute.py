from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from liere.encodings.absolute import Absolute


@pytest.mark.parametrize("init_std", [0.02, 1.0])
def test_init_std(init_std):
    torch.manual_seed(0)
    embedding = Absolute((16, 16), 64, init_std=init_std).embedding
    assert embedding.std().item() == pytest.approx(init_std, rel=0.02)


def test_adds_its_vectors_to_all_tokens():
    encoding = Absolute((2, 3), 8, num_prefix_tokens=2)
    tokens = torch.randn(4, 8, 8)
    assert torch.equal(encoding.embed(tokens, torch.zeros(6, 2), (2, 3)), tokens + encoding.embedding)


@pytest.mark.parametrize(
    ("grid", "other", "mode"),
    [
        ((5,), (9,), "linear"),
        ((4, 3), (6, 6), "bicubic"),
        ((4, 4), (2, 8), "bicubic"),
        ((2, 4, 3), (4, 6, 3), "trilinear"),
    ],
)
def test_interpolates_the_cells_and_keeps_the_prefix(grid, other, mode):
    encoding = Absolute(grid, 8, num_prefix_tokens=1, init_std=1)
    count = torch.Size(other).numel()
    found = encoding.embed(torch.zeros(1, 1 + count, 8), torch.zeros(count, len(grid)), other)
    assert torch.equal(found[:, 0], encoding.embedding[:, 0])
    for channel in range(8):
        cells = encoding.embedding[0, 1:, channel].reshape(1, 1, *grid)
        expected = F.interpolate(cells, other, mode=mode, align_corners=False).flatten()
        torch.testing.assert_close(found[0, 1:, channel], expected)


def test_four_axes_cannot_be_interpolated():
    encoding = Absolute((2, 2, 2, 2), 8)
    assert encoding.embed(torch.zeros(1, 16, 8), torch.zeros(16, 4), (2, 2, 2, 2)).shape == (1, 16, 8)
    with pytest.raises(ValueError, match="absolute positions of 4 axes cannot be interpolated"):
        encoding.embed(torch.zeros(1, 24, 8), torch.zeros(24, 4), (3, 2, 2, 2))


@pytest.mark.parametrize("value", [-1, math.nan, math.inf])
def test_init_std_must_be_finite_and_not_negative(value):
    with pytest.raises(ValueError, match=r"init_std must be between 0 and 1e\+12, got"):
        Absolute((2, 2), 8, init_std=value)


@pytest.mark.usefixtures("no_shape_checks")
def test_init_std_is_a_number():
    with pytest.raises(TypeError, match="init_std must be a number, got 'abc' of type str"):
        Absolute((2, 2), 8, init_std="abc")


def test_keeps_the_dtype_of_the_tokens():
    tokens = torch.zeros(1, 4, 8, dtype=torch.bfloat16)
    assert Absolute((2, 2), 8).embed(tokens, torch.zeros(4, 2), (2, 2)).dtype == torch.bfloat16
