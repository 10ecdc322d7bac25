from __future__ import annotations

import math

import pytest
import torch

from liere import grid_positions
from liere.encodings.sincos import SinCos


@pytest.mark.parametrize(("grid", "dim"), [((5,), 8), ((3, 4), 18), ((2, 3, 4), 32)])
@pytest.mark.parametrize("temperature", [10_000, 100])
@pytest.mark.parametrize("larger", [0, 2])
def test_agrees_with_the_formula_entry_by_entry(grid, dim, temperature, larger):
    trained, grid = grid, tuple(n + larger for n in grid)
    positions = grid_positions(grid, reference_shape=trained, dtype=torch.float64)
    tokens = torch.zeros(1, 2 + len(positions), dim, dtype=torch.float64)
    found = SinCos(trained, dim, temperature=temperature).embed(tokens, positions, grid)[0]
    assert torch.equal(found[:2], tokens[0, :2])
    count = dim // (2 * len(grid))
    expected = torch.zeros(len(positions), dim, dtype=torch.float64)
    for token, cell in enumerate(torch.cartesian_prod(*map(torch.arange, grid)).reshape(len(positions), -1).tolist()):
        for axis, index in enumerate(cell):
            for i in range(count):
                angle = index / temperature ** (i / count)
                expected[token, axis * 2 * count + i] = math.sin(angle)
                expected[token, axis * 2 * count + count + i] = math.cos(angle)
    torch.testing.assert_close(found[2:], expected, rtol=0, atol=1e-14)


def test_needs_a_frequency_an_axis():
    with pytest.raises(ValueError, match="dim must be at least 6 for 3 axes, got 5"):
        SinCos((2, 2, 2), 5)
