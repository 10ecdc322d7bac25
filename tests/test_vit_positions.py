"""Models that are given positions or a spacing of voxels."""

from __future__ import annotations

import pytest
import torch

from liere import create_encoding, grid_positions
from liere.vit_positions import check_spacing, spacing_scale
from tests.models import ENCODINGS, SHAPE, small_model
from tests.numerics import assert_close

PLACED = [name for name in ENCODINGS if create_encoding(name, SHAPE).has_coordinates]
X = torch.randn(2, 3, 16, 24, generator=torch.Generator().manual_seed(0))
GRID = grid_positions((4, 6), reference_shape=(4, 4))
VOLUME = {"image_size": (4, 8, 8), "patch_size": (2, 4, 4), "in_channels": 1}


@pytest.mark.parametrize("name", PLACED)
@pytest.mark.parametrize("place", ["none", "center"])
class TestGivenPositions:
    def test_those_of_the_grid_change_nothing(self, name, place):
        model = small_model(name, cls_position=place, num_registers=1)
        with torch.no_grad():
            expected = model(X)
            assert torch.equal(model(X, positions=GRID), expected)
            assert_close(model(X, positions=GRID.expand(2, -1, -1)), expected, 1e-5)
            assert_close(model(X, positions=GRID.double()), expected, 1e-5)
            assert_close(model(X, positions=GRID[None]), expected, 1e-5)

    def test_each_example_may_have_its_own(self, name, place):
        model = small_model(name, cls_position=place)
        positions = torch.rand(2, 24, 2)
        together = model(X, positions=positions)
        for n in range(2):
            assert_close(together[n : n + 1], model(X[n : n + 1], positions=positions[n]), 1e-5)
        assert (together - model(X)).abs().max() > 1e-4

    def test_gradients_reach_them(self, name, place):
        model = small_model(name, cls_position=place).double()
        positions = torch.rand(2, 24, 2, dtype=torch.float64, requires_grad=True)
        direction = torch.randn_like(positions)
        x = X.double()
        model(x, positions=positions).square().sum().backward()
        slope = (positions.grad * direction).sum()
        step = 1e-6
        with torch.no_grad():
            ahead, behind = (model(x, positions=positions + s * direction).square().sum() for s in (step, -step))
        assert slope.item() == pytest.approx(((ahead - behind) / (2 * step)).item(), rel=1e-4, abs=1e-7)


def test_integers_are_positions_and_training_moves_them():
    model = small_model("liere8", position_shift=1.0)
    steps = torch.cartesian_prod(torch.arange(4), torch.arange(6))
    assert_close(model(X, positions=steps), model(X, positions=steps.float()), 1e-6)
    model.train()
    assert (model(X, positions=GRID) - model(X, positions=GRID)).abs().max() > 1e-5


class TestSpacing:
    @pytest.mark.parametrize("name", PLACED)
    def test_positions_are_scaled(self, name):
        model, x = small_model(name, **VOLUME, spacing=(2.5, 0.7, 0.7)), torch.randn(2, 1, 6, 8, 8)
        grid = grid_positions((3, 2, 2), reference_shape=(2, 2, 2))
        with torch.no_grad():
            assert torch.equal(model(x, spacing=(2.5, 0.7, 0.7)), model(x))
            expected = model(x, positions=grid * torch.tensor([2.0, 1.0, 0.5]))
            assert_close(model(x, spacing=(5.0, 0.7, 0.35)), expected, 1e-5)
            assert_close(model(x, spacing=[5, 0.7, 0.35]), expected, 1e-5)
            assert_close(model(x, spacing=torch.tensor([5.0, 0.7, 0.35])), expected, 1e-5)
            assert (expected - model(x)).abs().max() > 1e-4

    @pytest.mark.parametrize("name", PLACED)
    @pytest.mark.parametrize("place", ["none", "center"])
    def test_each_example_may_have_its_own(self, name, place):
        model, x = small_model(name, **VOLUME, cls_position=place), torch.randn(3, 1, 4, 8, 8)
        spacing = torch.rand(3, 3) + 0.5
        together = model(x, spacing=spacing)
        for n in range(3):
            assert_close(together[n : n + 1], model(x[n : n + 1], spacing=spacing[n].tolist()), 1e-5)

    def test_half_the_spacing_and_twice_the_voxels_cover_the_same(self):
        model = small_model("liere8", **VOLUME)
        seen = []
        embed = model.encoding.embed
        model.encoding.embed = lambda tokens, positions, grid: seen.append(positions) or embed(tokens, positions, grid)
        model(torch.zeros(1, 1, 8, 16, 16), spacing=(0.5, 0.5, 0.5))
        assert_close(seen[0].unique(), torch.tensor([0, 0.5, 1.0, 1.5]), 1e-7)

    def test_draws_of_training_are_in_token_steps_of_each_example(self):
        model, x = small_model("sincos", **VOLUME, position_shift=3.0).train(), torch.randn(2, 1, 4, 8, 8)
        seen = []
        embed = model.encoding.embed
        model.encoding.embed = lambda tokens, positions, grid: seen.append(positions) or embed(tokens, positions, grid)
        spacing = torch.tensor([[0.5, 1.0, 2.0], [1.0, 3.0, 1.0]])
        for given in (spacing, spacing[0].tolist()):
            torch.manual_seed(0)
            model(x, spacing=given)
        batch, one = seen
        steps = batch / spacing[:, None]
        assert torch.equal(steps, steps.round())
        assert torch.equal(steps[0], steps[1])
        assert_close(batch[0], one, 1e-6)

    def test_nothing_is_left_behind(self):
        model, x = small_model("liere8", **VOLUME), torch.randn(1, 1, 4, 8, 8)
        with torch.no_grad():
            before = model(x)
            model(x, spacing=(2, 1, 1))
            model(x, spacing=torch.rand(1, 3) + 1)
            model(x, positions=torch.rand(8, 3))
            assert torch.equal(model(x), before)
        assert set(model.state_dict()) == set(small_model("liere8", **VOLUME).state_dict())


@pytest.mark.usefixtures("no_shape_checks")
class TestRefused:
    @pytest.mark.parametrize("name", ["absolute", "none"])
    def test_encodings_without_coordinates(self, name):
        model = small_model(name)
        with pytest.raises(ValueError, match=r"positions has no effect on the encoding .*: leave it out, or use"):
            model(X, positions=GRID)
        with pytest.raises(ValueError, match=r"spacing has no effect on the encoding .*: leave it out, or use"):
            model(X, spacing=(1, 2))
        with pytest.raises(ValueError, match=r"spacing=\(2\.0, 1\.0\) changes coordinates, but the encoding"):
            small_model(name, spacing=(2, 1))
        small_model(name, spacing=(1, 1))

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"positions": GRID[1:]}, ValueError, r"shape \[23, 2\], but the input has 2 examples of 24 patches: give"),
            ({"positions": GRID.expand(3, -1, -1)}, ValueError, r"give \[24, 2\] or \[2, 24, 2\], without prefix"),
            ({"positions": GRID.expand(1, 1, -1, -1)}, ValueError, "the input has 2 examples of 24 patches"),
            ({"positions": torch.zeros(24, 3)}, ValueError, "this encoding has 2 axes"),
            ({"positions": GRID.bfloat16()}, TypeError, "must be fp32, fp64 or integers, got torch.bfloat16"),
            ({"positions": GRID / 0}, ValueError, "positions must be finite"),
            ({"positions": GRID.tolist()}, TypeError, "positions must be a tensor"),
            ({"positions": GRID, "spacing": (1, 1)}, ValueError, "positions and spacing are both given"),
            ({"spacing": (1, 2, 3)}, ValueError, r"one positive number per axis, got \(1, 2, 3\): this model has 2"),
            ({"spacing": 2.0}, ValueError, "one positive number per axis, got 2.0"),
            ({"spacing": (1, 0)}, ValueError, r"one positive number per axis, got \(1, 0\)"),
            ({"spacing": (1, float("nan"))}, ValueError, "one positive number per axis"),
            ({"spacing": "12"}, ValueError, "one positive number per axis, got '12'"),
            (
                {"spacing": torch.ones(3, 2)},
                ValueError,
                r"spacing must hold positive numbers, .*\[2\] or \[2, 2\], got",
            ),
            ({"spacing": torch.tensor([1.0, -1.0])}, ValueError, "spacing must hold positive numbers"),
        ],
    )
    def test_bad_values(self, arguments, error, message):
        with pytest.raises(error, match=message):
            small_model("liere8")(X, **arguments)

    @pytest.mark.parametrize("policy", ["rescale", "reference"])
    def test_policies_without_distances(self, policy):
        with pytest.raises(ValueError, match=f"spacing needs position_policy='extend', got '{policy}'"):
            small_model("liere8", position_policy=policy)(X, spacing=(1, 2))


def test_spacings_are_relative_to_training():
    assert check_spacing([1, 2.5], 2) == (1.0, 2.5)
    numbers = pytest.importorskip("numpy").array([1, 2.5], dtype="float32")
    assert check_spacing(numbers, 2) == check_spacing(tuple(numbers), 2) == (1.0, 2.5)  # as headers of volumes have it
    assert spacing_scale((1, 5), (2.0, 2.5), 1) == (0.5, 2.0)
    found = spacing_scale(torch.tensor([[1, 5], [2, 5]]), (2.0, 2.5), 2)
    assert torch.equal(found, torch.tensor([[[0.5, 2.0]], [[1.0, 2.0]]]))
