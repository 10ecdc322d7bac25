"""Random changes of positions in training: their range, their distribution, and what does not change."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import liere
from liere import augment_positions, grid_positions
from liere.position_augmentation import PositionAugmentation
from tests.numerics import assert_close, seeds

EVERYTHING = {"shift": 1.75, "stretch": 1.5, "zoom": 2.0, "noise": 0.4}
shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)
batches = st.sampled_from([(), (1,), (3,), (2, 2)])
# Eighths, so that no offset is on the edge between two numbers of steps.
shifts = st.integers(0, 24).map(lambda eighths: eighths / 8)
factors = st.sampled_from([1.0, 1.1, 2.0, 7.0])
noises = st.sampled_from([0.0, 0.3, 2.0])


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def written_out(
    positions: Tensor,
    *,
    shift: float,
    stretch: float,
    zoom: float,
    noise: float,
    step: list[float],
    extent: list[float],
    seed: int,
) -> Tensor:
    """Compute `(p + noise) * stretch * zoom + shift` coordinate by coordinate, in Python's floats."""
    generator, ndim = seeded(seed), positions.shape[-1]
    dtype = torch.float64 if positions.dtype == torch.float64 else torch.float32

    def draw(*shape: int) -> list[float]:
        return torch.rand(shape, generator=generator, dtype=dtype).flatten().tolist()

    own = draw(*positions.shape) if noise else [0.5] * positions.numel()
    by_axis, for_all = (draw(ndim), draw(1)[0]) if stretch != 1 or zoom != 1 else ([0.5] * ndim, 0.5)
    chance = draw(ndim) if shift else [0.0] * ndim
    result = []
    for number, coordinate in enumerate(positions.flatten().tolist()):
        axis = number % ndim
        moved = coordinate + (2 * own[number] - 1) * noise * step[axis]
        moved *= stretch ** (2 * by_axis[axis] - 1) * zoom ** (2 * for_all - 1)
        reach = shift * extent[axis]
        if step[axis] == 0:
            moved += chance[axis] * reach
        else:
            most = math.floor(reach / step[axis] + 1e-4)
            moved += min(math.floor(chance[axis] * (most + 1)), most) * step[axis]
        result.append(moved)
    return torch.tensor(result, dtype=torch.float64).view(positions.shape)


@given(
    shape=shapes,
    batch=batches,
    shift=shifts,
    stretch=factors,
    zoom=factors,
    noise=noises,
    dtype=st.sampled_from([torch.float32, torch.float64]),
    given_step=st.sampled_from([None, 0.0, 0.25]),
    seed=seeds,
)
def test_agrees_with_the_formula_written_out(shape, batch, shift, stretch, zoom, noise, dtype, given_step, seed):
    amounts = {"shift": shift, "stretch": stretch, "zoom": zoom, "noise": noise}
    positions = grid_positions(shape, dtype=dtype).expand(*batch, -1, -1)
    found = augment_positions(positions, **amounts, step=given_step, generator=seeded(seed))
    step = [1 / max(n - 1, 1) if given_step is None else given_step for n in shape]
    extent = [float(n > 1) for n in shape]
    expected = written_out(positions, **amounts, step=step, extent=extent, seed=seed)
    assert found.dtype == dtype
    assert found.shape == positions.shape
    assert_close(found, expected, 100 * torch.finfo(dtype).eps * max(1.0, expected.abs().max().item()))


def offsets(coordinates: Tensor, draws: int, **options) -> Tensor:
    """Return `draws` random offsets, by giving the positions as many axes, each with its own offset."""
    positions = coordinates[:, None].expand(-1, draws)
    moved = augment_positions(positions, generator=seeded(0), **options) - positions
    assert_close(moved, moved[:1].expand_as(moved), 4 * torch.finfo(coordinates.dtype).eps * moved.abs().max().item())
    return moved[0]


def axis(n: int, **options) -> Tensor:
    return grid_positions((n,), dtype=torch.float64, **options)[:, 0]


def chance_of(counts: Tensor) -> float:
    """Return the probability that equally likely values have counts as uneven as these, by the chi-square test."""
    counts = counts.double()
    statistic = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
    return float(torch.special.gammaincc(torch.tensor((len(counts) - 1) / 2), statistic / 2))


def distance_to_uniform(samples: Tensor) -> float:
    """Return Kolmogorov's statistic for samples in [0, 1]; above 1.95 once in a thousand times."""
    samples, n = samples.double().flatten().sort().values, samples.numel()
    ranks = torch.arange(n + 1, dtype=torch.float64) / n
    return max(float((ranks[1:] - samples).max()), float((samples - ranks[:-1]).max())) * math.sqrt(n)


class TestShift:
    @given(shape=shapes, shift=shifts, seed=seeds)
    def test_all_differences_are_kept(self, shape, shift, seed):
        positions = grid_positions(shape, dtype=torch.float64)
        moved = augment_positions(positions, shift=shift, generator=seeded(seed))
        assert_close(moved[:, None] - moved, positions[:, None] - positions, 1e-14)

    @given(shape=shapes, shift=shifts, start=st.sampled_from([0.0, -3.0, 100.0]), seed=seeds)
    def test_offsets_are_whole_steps_within_reach(self, shape, shift, start, seed):
        positions = grid_positions(shape, dtype=torch.float64) + start
        offset = (augment_positions(positions, shift=shift, generator=seeded(seed)) - positions)[0]
        for n, found in zip(shape, offset.tolist(), strict=True):
            steps = found * max(n - 1, 1)
            assert steps == pytest.approx(round(steps), abs=1e-9)
            assert -1e-9 <= found <= shift * (n > 1) + 1e-9

    @pytest.mark.parametrize(("n", "most"), [(9, 14), (5, 7), (3, 3), (2, 1), (1, 0)])
    def test_every_offset_is_as_likely_as_the_others(self, n, most):
        steps = offsets(axis(n), 4000, shift=1.75) * (n - 1)
        counts = steps.round().long().bincount()
        assert len(counts) == most + 1
        assert int(counts.min()) > 0
        assert chance_of(counts) > 1e-3 or not most

    def test_axes_are_moved_on_their_own(self):
        rows, columns = (offsets(axis(5), 4000, shift=1.0) * 4).long().view(2, -1)
        assert chance_of((5 * rows + columns).bincount(minlength=25)) > 1e-3

    @pytest.mark.usefixtures("no_shape_checks")
    def test_calls_are_as_likely_to_reach_any_offset(self):
        positions, generator = grid_positions((5, 3)), seeded(0)
        moved = [augment_positions(positions, shift=1.0, generator=generator)[0] for _ in range(250)]
        rows, columns = (torch.stack(moved) * torch.tensor([4, 2])).round().long().T
        assert chance_of((3 * rows + columns).bincount(minlength=15)) > 1e-3

    def test_offsets_are_continuous_with_a_step_of_0(self):
        found = offsets(axis(3), 2000, shift=1.5, step=0)
        assert 0 <= found.min() < 0.02
        assert 1.48 < found.max() <= 1.5
        assert distance_to_uniform(found / 1.5) < 1.95
        assert found.unique().numel() > 1990

    def test_a_step_may_be_continuous_on_some_axes_only(self):
        found = offsets(axis(3), 200, shift=1.0, step=[0.5, 0] * 100)
        assert found[::2].unique().tolist() == [0, 0.5, 1]
        assert found[1::2].unique().numel() == 100

    def test_extent_and_step_may_be_those_of_another_grid(self):
        """Three tokens of a training grid of nine."""
        coordinates = axis(3, reference_shape=(9,))
        assert (8 * offsets(coordinates, 300, shift=1.0, extent=1.0)).unique().tolist() == list(range(9))
        assert (8 * offsets(coordinates, 300, shift=1.0)).unique().tolist() == [0, 1, 2]
        extent, step = torch.tensor([1.0, 0.5] * 100), torch.tensor([0.5, 0.25] * 100)
        found = offsets(coordinates, 200, shift=1.0, extent=extent, step=step)
        assert found[::2].unique().tolist() == [0, 0.5, 1]
        assert found[1::2].unique().tolist() == [0, 0.25, 0.5]

    def test_a_reach_of_less_than_a_step_moves_nothing(self):
        assert offsets(axis(5), 50, shift=0.2).abs().max() == 0
        assert offsets(axis(5), 50, shift=0.25).max() == 0.25


class TestFactors:
    def exponents(self, ndim: int, **options: float) -> Tensor:
        """Return the logarithm of each axis's factor."""
        positions = torch.tensor([[1.0], [3.0]], dtype=torch.float64).expand(2, ndim)
        factors = augment_positions(positions, generator=seeded(0), **options) / positions
        assert_close(factors[0], factors[1], 1e-12)
        return factors[0].log()

    def test_stretch_is_log_uniform_and_each_axis_has_its_own(self):
        exponents = self.exponents(3000, stretch=3.0) / math.log(3)
        assert 0.99 < exponents.abs().max() <= 1 + 1e-12
        assert distance_to_uniform((exponents + 1) / 2) < 1.95
        assert exponents.unique().numel() > 2990
        assert abs(float(torch.stack([exponents[1:], exponents[:-1]]).corrcoef()[0, 1])) < 0.1

    @pytest.mark.usefixtures("no_shape_checks")
    def test_zoom_is_log_uniform_and_one_for_all_axes(self):
        assert self.exponents(100, zoom=3.0).unique().numel() == 1
        one, generator = torch.ones(1, 1, dtype=torch.float64), seeded(0)
        factors = torch.cat([augment_positions(one, zoom=3.0, generator=generator) for _ in range(250)])
        exponents = factors.log() / math.log(3)
        assert 0.98 < exponents.abs().max() <= 1 + 1e-12
        assert distance_to_uniform((exponents + 1) / 2) < 1.95

    def test_both_multiply(self):
        stretched, both = self.exponents(100, stretch=2.0), self.exponents(100, stretch=2.0, zoom=3.0)
        zoom = (both - stretched).unique()
        assert_close(zoom, zoom[:1].expand_as(zoom), 1e-12)
        assert 0.01 < zoom[0].abs() <= math.log(3)

    def test_the_origin_stays(self):
        moved = augment_positions(torch.zeros(2, 2), stretch=2.0, zoom=2.0)
        assert moved.abs().max() == 0


class TestNoise:
    def test_it_is_uniform_within_token_steps_and_every_coordinate_s_own(self):
        positions = grid_positions((41, 21), dtype=torch.float64)
        moved = augment_positions(positions, noise=0.4, generator=seeded(0)) - positions
        units = moved * torch.tensor([40, 20]) / 0.4
        assert 0.99 < units.abs().max() <= 1 + 1e-9
        for axis in range(2):
            assert distance_to_uniform((units[:, axis] + 1) / 2) < 1.95
        assert abs(float(units.T.corrcoef()[0, 1])) < 0.1
        assert abs(float(torch.stack([units[1:, 0], units[:-1, 0]]).corrcoef()[0, 1])) < 0.1
        assert units.unique().numel() == units.numel()

    def test_members_of_a_batch_have_their_own(self):
        positions = grid_positions((3, 3)).expand(4, -1, -1)
        moved = augment_positions(positions, noise=0.4, generator=seeded(0))
        assert (moved - positions).unique().numel() > 60

    def test_it_is_none_where_the_step_is_0(self):
        positions = grid_positions((3, 3))
        assert torch.equal(augment_positions(positions, noise=1.0, step=0), positions)

    def test_it_comes_before_factors(self):
        """Noise is added first, so that it is relative to the steps of the stretched grid."""
        positions = torch.zeros(1000, 1, dtype=torch.float64)
        moved = augment_positions(positions, noise=0.5, zoom=8.0, step=1.0, generator=seeded(1))
        factor = augment_positions(positions + 1, zoom=8.0, generator=_after(seeded(1), 1000))[0]
        assert abs(math.log(factor)) > 0.5
        assert 0.49 * factor < moved.abs().max() <= 0.5 * factor


def _after(generator: torch.Generator, numbers: int) -> torch.Generator:
    torch.rand(numbers, 1, generator=generator, dtype=torch.float64)
    return generator


class TestRandomness:
    @given(seed=seeds)
    def test_the_same_seed_is_the_same_draw(self, seed):
        positions = grid_positions((4, 4))
        draws = [augment_positions(positions, **EVERYTHING, generator=seeded(seed)) for _ in range(2)]
        torch.manual_seed(seed)
        draws.append(augment_positions(positions, **EVERYTHING))
        assert torch.equal(draws[0], draws[1])
        assert torch.equal(draws[0], draws[2])

    def test_calls_differ(self):
        positions, generator = grid_positions((4, 4)), seeded(1)
        draws = [augment_positions(positions, **EVERYTHING, generator=generator) for _ in range(5)]
        draws += [augment_positions(positions, **EVERYTHING) for _ in range(5)]
        assert all(not torch.equal(a, b) for a, b in itertools.combinations(draws, 2))

    def test_one_generator_is_used_and_others_are_left_alone(self):
        positions, mine, other = grid_positions((4, 4)), seeded(3), seeded(3)
        everywhere = torch.get_rng_state()
        augment_positions(positions, **EVERYTHING, generator=mine)
        assert torch.equal(torch.get_rng_state(), everywhere)
        assert not torch.equal(mine.get_state(), other.get_state())
        before = mine.get_state()
        augment_positions(positions, **EVERYTHING)
        assert torch.equal(mine.get_state(), before)
        assert not torch.equal(torch.get_rng_state(), everywhere)

    @pytest.mark.parametrize("amount", ["shift", "stretch", "zoom"])
    def test_all_members_of_a_batch_share_a_draw(self, amount):
        positions = grid_positions((4, 4))
        batch = augment_positions(positions.expand(5, 2, -1, -1), **{amount: 2.0}, generator=seeded(0))
        alone = augment_positions(positions, **{amount: 2.0}, generator=seeded(0))
        assert torch.equal(batch, alone.expand(5, 2, -1, -1))
        assert not torch.equal(alone, positions)


class TestGradients:
    def moved(self, positions: Tensor) -> Tensor:
        return augment_positions(positions, **EVERYTHING, step=0.5, extent=1.0, generator=seeded(0))

    def test_they_are_those_of_finite_differences(self):
        positions = grid_positions((3, 3), dtype=torch.float64).requires_grad_()
        assert torch.autograd.gradcheck(self.moved, positions)
        assert torch.autograd.gradgradcheck(self.moved, positions)

    @given(shape=shapes, seed=seeds)
    def test_of_a_shift_they_are_one_and_of_factors_the_factors(self, shape, seed):
        positions = (grid_positions(shape, dtype=torch.float64) + 1).requires_grad_()
        for amounts in ({"shift": 1.5, "noise": 0.3}, {"stretch": 2.0, "zoom": 1.5}):
            moved = augment_positions(positions, **amounts, generator=seeded(seed))
            (gradient,) = torch.autograd.grad(moved.sum(), positions)
            expected = torch.ones_like(positions) if "shift" in amounts else (moved / positions).detach()
            assert_close(gradient, expected, 1e-12)

    def test_they_reach_positions_of_any_float_type(self):
        for dtype in (torch.float16, torch.bfloat16, torch.float32):
            positions = grid_positions((3, 3)).to(dtype).requires_grad_()
            augment_positions(positions, shift=1.0).sum().backward()
            assert torch.equal(positions.grad, torch.ones_like(positions))

    def test_there_are_none_without_gradients(self):
        assert not self.moved(grid_positions((3, 3))).requires_grad


class TestTypesAndShapes:
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_halves_are_computed_in_full_precision(self, dtype):
        positions = grid_positions((5, 5)).to(dtype)  # fourths are exact
        found = augment_positions(positions, **EVERYTHING, generator=seeded(0))
        expected = augment_positions(positions.float(), **EVERYTHING, generator=seeded(0))
        assert found.dtype == dtype
        assert torch.equal(found, expected.to(dtype))

    @pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
    def test_ints_become_floats(self, dtype):
        positions = torch.cartesian_prod(torch.arange(5), torch.arange(9)).to(dtype)
        moved = augment_positions(positions, shift=1.0, generator=seeded(1))
        assert moved.dtype == torch.float32
        assert torch.equal(moved - positions, (moved - positions)[:1].round().expand(45, -1))
        same = augment_positions(positions)
        assert same.dtype == torch.float32
        assert torch.equal(same, positions.float())

    def test_ints_become_what_is_the_default(self):
        torch.set_default_dtype(torch.float64)
        try:
            assert augment_positions(torch.arange(3)[:, None], noise=0.1).dtype == torch.float64
        finally:
            torch.set_default_dtype(torch.float32)

    @pytest.mark.parametrize("shape", [(0, 2), (3, 0, 2), (0, 5, 2), (5, 0), (0, 0)])
    def test_nothing_stays_nothing(self, shape):
        before = torch.get_rng_state()
        assert augment_positions(torch.zeros(shape), **EVERYTHING).shape == shape
        assert torch.equal(torch.get_rng_state(), before)

    def test_one_token(self):
        position = torch.tensor([[0.25, 4.0]])
        assert torch.equal(augment_positions(position, shift=3.0), position)  # it has no extent
        assert augment_positions(position, shift=3.0, extent=1.0, step=1.0, generator=seeded(0)).tolist() == [[1.25, 7]]
        moved = augment_positions(position, noise=0.5, generator=seeded(0)) - position
        assert 0 < moved.abs().max() <= 0.5  # of a step of 1

    def test_an_axis_with_one_token_is_not_shifted(self):
        positions = grid_positions((1, 5))
        moved = [augment_positions(positions, shift=2.0, generator=seeded(seed)) - positions for seed in range(20)]
        assert all(bool((each[:, 0] == 0).all()) for each in moved)
        assert any(bool((each[:, 1] > 0).all()) for each in moved)

    def test_positions_without_values(self):
        assert augment_positions(torch.zeros(4, 2, device="meta"), **EVERYTHING).shape == (4, 2)

    def test_what_is_given_is_not_written_to(self):
        positions = grid_positions((3, 3))
        before = positions.clone()
        augment_positions(positions, **EVERYTHING)
        assert torch.equal(positions, before)


class TestSteps:
    """Return the step used by default, inferred from the offsets: the smallest one that is not 0."""

    def step(self, points: Tensor) -> list[float]:
        found = [offsets(coordinates.double(), 400, shift=3.0) for coordinates in points.T]
        return [offset[offset > 0].min().item() for offset in found]

    def test_of_irregular_points_it_is_the_smallest_distance_on_each_axis(self):
        points = torch.tensor([[0.0, 2.0], [0.3, 7.0], [1.0, 3.5], [0.3, 4.5]])
        assert self.step(points) == pytest.approx([0.3, 1.0])
        assert self.step(points[[3, 1, 0, 2]]) == pytest.approx([0.3, 1.0])

    @given(seed=seeds)
    def test_offsets_of_irregular_points_are_multiples_of_it(self, seed):
        points = torch.rand(6, 2, generator=seeded(seed), dtype=torch.float64)
        smallest = points.sort(dim=0).values.diff(dim=0).amin(0)
        extent = points.amax(0) - points.amin(0)
        steps = (augment_positions(points, shift=0.9, generator=seeded(seed)) - points)[0] / smallest
        assert_close(steps, steps.round(), 1e-6 * max(1.0, steps.max().item()))
        assert bool((steps * smallest <= 0.9 * extent + 1e-9).all())
        moved = augment_positions(points, shift=0.9, step=0.25, generator=seeded(seed)) - points
        assert_close(4 * moved, (4 * moved[:1]).round().expand(6, 2), 1e-9)

    def test_a_grid_may_have_holes(self):
        points = grid_positions((9, 9))[torch.randperm(81, generator=seeded(0))[:40]]
        assert self.step(points) == pytest.approx([1 / 8, 1 / 8], rel=1e-6)

    def test_equal_coordinates_may_differ_by_rounding(self):
        points = grid_positions((5, 5))
        points = points + 1e-7 * torch.randn(25, 2, generator=seeded(0))
        assert self.step(points) == pytest.approx([0.25, 0.25], rel=1e-5)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
    @pytest.mark.parametrize("size", [8, 14, 32, 64])
    def test_it_is_that_of_a_grid_whose_coordinates_are_rounded(self, dtype, size):
        """A slightly wrong step gives one offset too many or too few at the end of the range."""
        positions = grid_positions((size,)).to(dtype).expand(-1, 3000)
        steps = augment_positions(positions, shift=1.0, generator=seeded(0))[0].double() * (size - 1)
        assert_close(steps, steps.round(), (size - 1) * torch.finfo(dtype).eps)
        counts = steps.round().long().bincount()
        assert len(counts) == size
        assert chance_of(counts) > 1e-3

    def test_far_grids_keep_their_step(self):
        positions = (grid_positions((64,)) + 1000).expand(-1, 3000)
        steps = (augment_positions(positions, shift=1.0, generator=seeded(0))[0].double() - 1000) * 63
        assert_close(steps, steps.round(), 0.01)
        assert len(steps.round().long().bincount()) == 64


class TestNothing:
    @pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
    def test_with_the_defaults_the_same_tensor_comes_back(self, dtype):
        positions = grid_positions((3, 3)).to(dtype).requires_grad_()
        before = torch.get_rng_state()
        assert augment_positions(positions) is positions
        assert augment_positions(positions, shift=0, stretch=1, zoom=1, noise=0, step=0.5, extent=3) is positions
        assert torch.equal(torch.get_rng_state(), before)

    def test_it_is_public(self):
        assert liere.augment_positions is augment_positions
        assert "augment_positions" in liere.__all__

    def test_amounts_know_whether_they_do_anything(self):
        assert not PositionAugmentation()
        assert not PositionAugmentation(shift=0, stretch=1)
        assert PositionAugmentation(noise=0.1)
        assert PositionAugmentation(shift=2.0, zoom=1.5).active == {"shift": 2.0, "zoom": 1.5}


POSITIONS = torch.zeros(4, 2)
WRONG = [
    ({"shift": -0.5}, ValueError, "shift must be a finite number >= 0, got -0.5: use 0 for no change"),
    ({"shift": math.inf}, ValueError, "shift must be a finite number >= 0, got inf"),
    (
        {"shift": 1e300},
        ValueError,
        r"shift must be at most 1,000,000, got 1e\+300: beyond that, rotations",
    ),
    ({"zoom": 10**400}, ValueError, "zoom must be at most 1,000,000, got 1000"),
    ({"shift": True}, ValueError, "shift must be a finite number >= 0, got True"),
    ({"generator": 3}, TypeError, "generator must be a torch.Generator, got 3"),
    ({"shift": None}, ValueError, "shift must be a finite number >= 0, got None"),
    ({"stretch": 0.9}, ValueError, "stretch must be a finite number >= 1, got 0.9: use 1 for no change"),
    ({"zoom": 0}, ValueError, "zoom must be a finite number >= 1, got 0: use 1 for no change"),
    ({"zoom": math.nan}, ValueError, "zoom must be a finite number >= 1, got nan"),
    ({"noise": "much"}, ValueError, "noise must be a finite number >= 0, got 'much': use 0 for no change"),
    ({"step": -1}, ValueError, r"step must be a finite number .* or 2 of them, got -1: give one for all axes"),
    ({"step": math.inf}, ValueError, "step must be a finite number >= 0, or 2 of them, got inf"),
    ({"step": [1, math.nan]}, ValueError, r"step must be .* got \[1, nan\]"),
    ({"step": [1, 2, 3]}, ValueError, r"step must be .* got \[1, 2, 3\]: .* or one per axis"),
    ({"step": torch.tensor([0.5, -0.5])}, ValueError, r"step must be .* got tensor\(\[ 0.5000, -0.5000\]\)"),
    ({"step": torch.ones(3)}, ValueError, "step must be .* or 2 of them"),
    ({"step": "wide"}, ValueError, "step must be .* got 'wide'"),
    ({"extent": -2.0}, ValueError, "extent must be a finite number >= 0, or 2 of them, got -2.0"),
    ({"extent": math.inf}, ValueError, "extent must be .* got inf"),
    ({"extent": [[1.0, 1.0]]}, ValueError, "extent must be"),
    ({"extent": []}, ValueError, r"extent must be .* got \[\]"),
    ({"positions": [[0.0]]}, TypeError, r"positions must be a tensor .* got list: convert it with torch.as_tensor"),
    ({"positions": torch.tensor(3.0)}, ValueError, r"positions has shape \[\], but must be \[\*batch, tokens, ndim"),
    ({"positions": torch.zeros(9)}, ValueError, r"positions has shape \[9\], but must be .* pass positions\[:, None\]"),
    ({"positions": torch.zeros(4, 2).bool()}, TypeError, "real numbers, got dtype torch.bool: convert them"),
    ({"positions": torch.zeros(4, 2).cfloat()}, TypeError, "real numbers, got dtype torch.complex64"),
    ({"positions": torch.tensor([[0.0, math.nan]])}, ValueError, r"positions\[0, 1\] is nan: positions must be finite"),
]


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize(("wrong", "error", "message"), WRONG, ids=[str(wrong) for wrong, _, _ in WRONG])
def test_what_is_wrong_is_named_with_its_value_and_a_remedy(wrong, error, message):
    with pytest.raises(error, match=message) as raised:
        augment_positions(**({"positions": POSITIONS, "shift": 1.0} | wrong))
    assert "\n" not in str(raised.value)
