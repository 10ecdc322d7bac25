from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from liere import grid_positions
from liere.rotations.rays import find_rays


@given(
    grid=st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple),
    reference=st.integers(2, 30),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_every_rotation_is_the_product_of_earlier_ones(grid, reference, dtype):
    positions = grid_positions(grid, reference_shape=(reference,) * len(grid), dtype=dtype)
    rays = find_rays(positions)
    if rays is None:
        return
    known = set(rays.roots.tolist())
    for target, left, right, multiple in rays.waves:
        assert set(left.tolist()) | set(right.tolist()) <= known
        known |= set(target.tolist())
        assert multiple.min() >= 2
        assert all(len(indices) == len(indices.unique()) for indices in (target, left, right))
        # Parallel, and the sum: so the generators commute, and the product is the rotation of the sum.
        torch.testing.assert_close(positions[left] + positions[right], positions[target], rtol=1e-6, atol=0)
        length = positions.double().norm(dim=-1)
        cosine = (positions[left].double() * positions[right].double()).sum(-1) / (length[left] * length[right])
        torch.testing.assert_close(cosine, torch.ones_like(cosine), rtol=0, atol=1e-12)
    assert known == set(range(len(positions)))


@pytest.mark.parametrize("grid", [(8,), (8, 8), (14, 14), (7, 20), (5, 6, 7)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_grid_has_as_many_roots_as_directions(grid, dtype):
    """Steps without a common divisor, and the origin."""
    directions = sum(math.gcd(*steps) <= 1 for steps in itertools.product(*map(range, grid)))
    assert len(find_rays(grid_positions(grid, dtype=dtype)).roots) == directions


def test_positions_off_any_ray_are_left_alone():
    assert find_rays(torch.rand(50, 2, generator=torch.Generator().manual_seed(0))) is None
    assert find_rays(torch.tensor([[1.0, 2.0], [2.0, 4.001]])) is None
    assert find_rays(torch.tensor([[1.0], [5.0]])) is None  # what lies between is missing
    assert find_rays(torch.tensor([[1.0, 1.0], [1.0, 1.0]])) is None
    assert find_rays(torch.tensor([[1.0], [-2.0]])) is None
    assert find_rays(torch.zeros(0, 2)) is None


def test_other_positions_are_noticed():
    positions = grid_positions((4, 4))
    before = find_rays(positions)
    positions.mul_(torch.tensor([1.0, 0.77])).add_(0.123)
    assert find_rays(positions) is None
    assert torch.equal(find_rays(grid_positions((4, 4))).roots, before.roots)


def test_rays_of_small_angles_are_computed():
    """Multiplying would accumulate the rounding errors of every step."""
    rays = find_rays(grid_positions((6, 6)))
    assert len(rays.for_levels(torch.zeros(36)).roots) == 36
    assert torch.equal(rays.for_levels(torch.full((36,), 5.0)).roots, rays.roots)
    some = rays.for_levels(torch.full((36,), 1.0))  # doubles only
    assert {int(m) for wave in some.waves for m in wave[3]} == {2}
    assert sorted(some.roots.tolist() + [int(t) for wave in some.waves for t in wave[0]]) == list(range(36))
