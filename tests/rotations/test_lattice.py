"""Rays in closed form against a slow search over all positions."""

from __future__ import annotations

import math
from collections import defaultdict

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

import liere
from liere import augment_positions, grid_positions
from liere.rotations import lattice
from liere.rotations.rays import find_rays

offsets = st.integers(-12, 25)


def search_slowly(positions: torch.Tensor) -> tuple[set[int], set[tuple[int, int, int, int]]]:
    """The roots, and the target, left, right and multiple of every product, by comparing positions one by one."""
    eps = torch.finfo(positions.dtype).eps
    points = positions.tolist()
    lengths = [math.hypot(*p) for p in points]
    directions = defaultdict(list)
    for index, (p, length) in enumerate(zip(points, lengths, strict=True)):
        if length > 0:
            directions[tuple(round(c / length, 4) for c in p)].append(index)
    products = set()
    for ray in directions.values():
        ray.sort(key=lengths.__getitem__)
        root, found = ray[0], {1: ray[0]}
        for index in ray[1:]:
            multiple = round(lengths[index] / lengths[root])
            more, less = (multiple + 1) // 2, multiple // 2
            exact = all(
                abs(c - multiple * r) <= 1.5 * eps * abs(c) for c, r in zip(points[index], points[root], strict=True)
            )
            if exact and multiple not in found and more in found and less in found:
                found[multiple] = index
                products.add((index, found[more], found[less], multiple))
    return set(range(len(points))) - {product[0] for product in products}, products


def as_sets(rays, count: int) -> tuple[set[int], set[tuple[int, int, int, int]]]:
    if rays is None:
        return set(range(count)), set()
    products = [product for wave in rays.waves for product in zip(*(part.tolist() for part in wave), strict=True)]
    assert len(products) == len(set(products))
    return set(rays.roots.tolist()), set(products)


def window(shape, offset, spacings, dtype=torch.float64) -> torch.Tensor:
    """Return every point of a window, each coordinate rounded once."""
    axes = [(torch.arange(n) + a).to(dtype) / h for n, a, h in zip(shape, offset, spacings, strict=True)]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).flatten(0, -2)


@st.composite
def windows(draw):
    ndim = draw(st.integers(1, 4))
    shape = draw(st.tuples(*[st.integers(1, [24, 9, 5, 4][ndim - 1])] * ndim))
    offset = draw(st.tuples(*[offsets] * ndim))
    spacings = draw(st.tuples(*[st.sampled_from([1, 2, 7, 8, 13, 0.3, 111])] * ndim))
    return window(shape, offset, spacings, draw(st.sampled_from([torch.float32, torch.float64])))


def refuse(*_):
    raise AssertionError("positions were searched one by one")


@pytest.fixture
def no_search(monkeypatch):
    monkeypatch.setattr(lattice, "_search", refuse)


@given(positions=windows(), seed=st.none() | st.integers(0, 100))
def test_windows_have_the_rays_that_a_search_finds(positions, seed):
    if seed is not None:  # in any order
        positions = positions[torch.randperm(len(positions), generator=torch.Generator().manual_seed(seed))]
    assert as_sets(find_rays(positions), len(positions)) == search_slowly(positions)


@given(positions=windows())
def test_windows_are_not_searched(positions):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lattice, "_search", refuse)
        lattice.find_lines(positions)


@pytest.mark.parametrize("grid", [(14, 14), (9, 9), (8,), (4, 7, 7)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_placement_of_a_grid_is_a_window(no_search, grid, dtype):
    """The rays are those of integer positions, regardless of rounding."""
    positions = grid_positions(grid, dtype=dtype)
    spacing = positions.new_tensor([1 / (n - 1) for n in grid])
    steps = (positions / spacing).round()
    for seed in range(40):
        moved = augment_positions(
            positions, shift=1.75, step=spacing, extent=1.0, generator=torch.Generator().manual_seed(seed)
        )
        offset = ((moved - positions) / spacing).round()
        assert as_sets(find_rays(moved), len(moved)) == as_sets(find_rays(steps + offset[0]), len(moved))


@given(positions=windows())
def test_with_extra_positions_a_ray_has_one_root(positions):
    rays = find_rays(positions)
    assume(rays is not None)
    rays = rays.with_extra(torch.full((len(positions),), 1e6))
    extended = rays.extra.extend(positions)
    known = set(rays.roots.tolist())
    for target, left, right, multiple in rays.waves:
        assert set(left.tolist()) | set(right.tolist()) <= known
        assert not known & set(target.tolist())
        known |= set(target.tolist())
        assert all(len(indices) == len(indices.unique()) for indices in (target, left, right))
        torch.testing.assert_close(extended[left] + extended[right], extended[target], rtol=1e-5, atol=0)
        assert multiple.min() >= 2
    assert known == set(range(len(extended)))
    on_rays = set((rays.lines.ray >= 0).nonzero().flatten().tolist()) | set(range(len(positions), len(extended)))
    assert len(on_rays & set(rays.roots.tolist())) == len(rays.lines.low)
    # All extra positions are used, and are made from extra positions only.
    extra = set(range(len(positions), len(extended)))
    assert extra <= {index for wave in rays.waves for part in (wave.left, wave.right) for index in part.tolist()}
    alone = rays.of_extra()
    assert set(alone.roots.tolist()) | {int(t) for wave in alone.waves for t in wave.target} == extra


def test_small_rotations_do_not_begin_at_extra_positions():
    rays = find_rays(window((6, 6), (5, 7), (13, 13)))
    assert rays.with_extra(torch.full((36,), 1e-3)) is rays
    assert len(rays.with_extra(torch.full((36,), 1e3)).roots) < len(rays.roots)


@pytest.mark.parametrize(
    "positions",
    [
        torch.rand(196, 2, generator=torch.Generator().manual_seed(0)),
        grid_positions((14, 14)) + 0.01 * torch.rand(196, 2, generator=torch.Generator().manual_seed(0)),
        grid_positions((14, 14)) + 0.1234,
        grid_positions((14, 14)) * torch.tensor([1.0, 1.1]) + torch.tensor([0.0, 0.05]),
        grid_positions((8, 8), dtype=torch.float64) - 0.5,  # even: the origin lies between two
        torch.tensor([[1.0], [float("nan")], [float("inf")]]),
    ],
    ids=["random", "noise", "offset", "stretch", "centered", "not finite"],
)
def test_nothing_to_find_is_seen_without_a_search(no_search, positions):
    assert lattice.find_lines(positions) is None


def test_irregular_positions_are_searched():
    positions = torch.cat([window((3, 3), (0, 0), (4, 4)), torch.tensor([[0.3, 0.7], [0.6, 1.4]]).double()])
    assert as_sets(find_rays(positions), 11) == search_slowly(positions)
    assert 10 not in find_rays(positions).roots
    uneven = torch.tensor([[0.0], [1.0], [2.0], [4.0], [7.0]])
    assert as_sets(find_rays(uneven), 5) == search_slowly(uneven)


@pytest.mark.parametrize("ahead", [1, 3])
def test_tokens_in_the_center_precede_a_window(no_search, ahead):
    grid = window((8, 8), (3, 5), (7, 7))
    center = (grid[:1] + grid[-1:]) / 2
    lines, own = lattice.find_lines(torch.cat([center.expand(ahead, -1), grid])), lattice.find_lines(grid)
    assert (lines.ray[:ahead] == -1).all()
    assert torch.equal(lines.ray[ahead:], own.ray)
    assert torch.equal(lines.multiple[ahead:], own.multiple)


@pytest.mark.parametrize("cls_position", ["none", "center"])
@pytest.mark.parametrize("encoding", ["liere8", "liere"])
def test_training_with_placement_searches_nothing(no_search, encoding, cls_position):
    model = liere.create_model(
        None,
        dim=32,
        depth=2,
        heads=2,
        mlp_dim=32,
        encoding=encoding,
        image_size=28,
        patch_size=4,
        num_classes=3,
        position_shift=1.75,
        cls_position=cls_position,
    )
    torch.manual_seed(0)
    for _ in range(5):
        model(torch.randn(2, 3, 28, 28)).sum().backward()
    assert model.encoding.generators.grad.isfinite().all()
