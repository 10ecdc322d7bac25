"""Models with random changes of positions in training, and with positions of the CLS token."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest
import torch
from torch import Tensor

from liere import PositionEncoding, create_encoding, grid_positions
from liere.positions import grid_spacing
from tests.models import ENCODINGS, SHAPE, small_model
from tests.numerics import assert_close

AMOUNTS = {"position_shift": 1.75, "position_stretch": 1.5, "position_zoom": 2.0, "position_noise": 0.4}
PLACED = [name for name in ENCODINGS if create_encoding(name, SHAPE).has_coordinates]
X = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def logits(model: torch.nn.Module, x: Tensor = X, seed: int = 0) -> Tensor:
    torch.manual_seed(seed)
    with torch.no_grad():
        return model(x)


def gradients(model: torch.nn.Module, x: Tensor = X, seed: int = 0) -> dict[str, Tensor]:
    torch.manual_seed(seed)
    names = [name for name, _ in model.named_parameters()]
    return dict(zip(names, torch.autograd.grad(model(x).square().sum(), list(model.parameters())), strict=True))


class Recorder(PositionEncoding):
    """Record the positions of each forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []

    def embed(self, tokens, positions, grid):
        self.seen.append(positions)
        return tokens


def recording_model(**options) -> torch.nn.Module:
    return small_model(Recorder(), **({"dim": 2, "depth": 1, "heads": 1, "mlp_dim": 1} | options)).train()


def test_encodings_with_coordinates_are_these():
    assert set(PLACED) == set(ENCODINGS) - {"absolute", "none"}
    assert {"rope_mixed", "liere8", "liere", "visionllama", "sincos"} <= set(PLACED)


class TestModes:
    @pytest.mark.parametrize("name", PLACED)
    def test_evaluation_is_that_of_a_model_without(self, name):
        plain, placed = small_model(name), small_model(name, **AMOUNTS)
        assert torch.equal(logits(placed), logits(plain))
        before = torch.get_rng_state()
        placed(X)
        assert torch.equal(torch.get_rng_state(), before)
        assert torch.equal(logits(placed.train(), X), logits(placed, X))
        placed.eval()
        assert torch.equal(logits(placed), logits(plain)), "training leaves nothing behind"

    @pytest.mark.parametrize("amount", AMOUNTS)
    @pytest.mark.parametrize("name", PLACED)
    def test_each_amount_acts_in_training_on_each_encoding(self, name, amount):
        plain, placed = small_model(name).train(), small_model(name, **{amount: AMOUNTS[amount]}).train()
        found = [logits(placed, seed=seed) for seed in range(3)]
        assert max((each - logits(plain)).abs().max() for each in found) > 1e-5
        assert max((each - found[0]).abs().max() for each in found) > 1e-5

    def test_a_model_without_draws_nothing(self):
        model = small_model("liere8").train()
        before = torch.get_rng_state()
        model(X)
        assert torch.equal(torch.get_rng_state(), before)

    def test_passes_differ_and_seeds_repeat_them(self):
        model = recording_model(**AMOUNTS)
        for seed in (0, 0, 1):
            logits(model, seed=seed)
        model(X)
        first, again, other, last = model.encoding.seen
        assert torch.equal(first, again)
        assert not torch.equal(first, other)
        assert not torch.equal(other, last)


class TestDraws:
    @pytest.mark.parametrize("name", ["liere8", "sincos"])
    def test_all_members_of_a_batch_share_one(self, name):
        model = small_model(name, **AMOUNTS).train()
        together = logits(model)
        alone = torch.cat([logits(model, member[None]) for member in X])
        assert_close(together, alone, 1e-5)
        twice = logits(model, X[:1].expand(4, -1, -1, -1))
        assert_close(twice, twice[:1].expand(4, -1), 1e-6)

    def test_there_is_one_a_pass(self):
        model = recording_model(**AMOUNTS)
        model(X)
        assert len(model.encoding.seen) == 1
        assert model.encoding.seen[0].shape == (16, 2)

    @pytest.mark.parametrize("name", ["rope_mixed", "liere8", "visionllama", "sincos"])
    @pytest.mark.parametrize("dropout", [0.0, 0.2])
    def test_it_is_the_same_in_the_backward_pass_of_checkpointing(self, name, dropout):
        model = small_model(name, dropout=dropout, attn_dropout=dropout, **AMOUNTS).train()
        plain = gradients(model)
        model.set_grad_checkpointing()
        for parameter, gradient in gradients(model).items():
            assert torch.equal(gradient, plain[parameter]), parameter
        other = gradients(model, seed=1)["patch_embed.projection.weight"]
        assert (other - plain["patch_embed.projection.weight"]).abs().max() > 1e-5

    @pytest.mark.parametrize("name", ["rope_mixed", "liere8", "liere"])
    @pytest.mark.parametrize("checkpointing", [False, True])
    def test_it_is_the_same_where_rotations_are_made_again(self, name, checkpointing):
        kept, again = (
            small_model(name, recompute=recompute, dropout=0.1, **AMOUNTS).train() for recompute in (False, True)
        )
        again.set_grad_checkpointing(checkpointing)
        plain = gradients(kept)
        for parameter, gradient in gradients(again).items():
            torch.testing.assert_close(gradient, plain[parameter], rtol=1e-4, atol=1e-5, msg=parameter)

    def test_copies_draw_as_the_model_does(self):
        model = small_model("liere8", **AMOUNTS).train()
        expected = logits(model)
        for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert twin.position_augmentation == model.position_augmentation
            assert torch.equal(logits(twin), expected)
            assert torch.equal(logits(twin.eval()), logits(small_model("liere8")))


class TestPositions:
    def offsets(self, passes: int, size: tuple[int, ...], **options) -> tuple[Tensor, tuple[int, ...]]:
        """Return the offsets `[passes, ndim]` in training on inputs of a size, and the grid."""
        model = recording_model(**options)
        grid = tuple(n // p for n, p in zip(size, model.patch_embed.patch_size, strict=True))
        base = grid_positions(grid, reference_shape=model.grid, policy=model.position_policy)
        for seed in range(passes):
            logits(model, torch.zeros(1, 3, *size), seed=seed)
        moved = torch.stack(model.encoding.seen) - base
        assert_close(moved, moved[:, :1].expand_as(moved), 1e-6)
        return moved[:, 0], grid

    @pytest.mark.usefixtures("no_shape_checks")
    @pytest.mark.parametrize("policy", ["extend", "rescale", "reference"])
    @pytest.mark.parametrize("size", [(16, 16), (24, 12)])
    def test_extent_is_that_of_training_and_steps_are_those_of_the_grid(self, policy, size):
        found, grid = self.offsets(120, size, position_shift=1.5, position_policy=policy)
        spacing = grid_spacing(grid, reference_shape=(4, 4), policy=policy)
        if policy == "extend":
            assert spacing == pytest.approx([1 / 3, 1 / 3])
        for offsets, step in zip(found.T, spacing, strict=True):
            steps = offsets / step
            assert_close(steps, steps.round(), 1e-4)
            assert set(steps.round().int().tolist()) == set(range(int(1.5 / step + 1e-4) + 1))

    @pytest.mark.usefixtures("no_shape_checks")
    @pytest.mark.parametrize(
        ("size", "most"), [((20,), [8]), ((8, 4, 12), [2, 0, 4]), ((4, 4, 8, 8), [0, 0, 2, 2])], ids=str
    )
    def test_models_of_any_number_of_axes(self, size, most):
        found, grid = self.offsets(60, size, position_shift=2.0, image_size=size, patch_size=4)
        steps = found * torch.tensor([max(n - 1, 1) for n in grid])
        assert_close(steps, steps.round(), 1e-4)
        assert steps.amin(0).tolist() == [0] * len(size)
        assert steps.amax(0).round().tolist() == most
        logits(small_model("liere8", image_size=size, patch_size=4, **AMOUNTS).train(), torch.zeros(1, 3, *size))

    def test_half_precision_models_keep_the_digits_of_positions(self):
        seen = []
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            model = recording_model(patch_size=1, position_shift=1.75).to(dtype)
            logits(model, X.to(dtype))
            seen += model.encoding.seen
        assert [positions.dtype for positions in seen] == [torch.float32, torch.float32, torch.float64]
        assert torch.equal(seen[0], seen[1])
        steps = 15 * seen[1].double()
        assert_close(steps, steps.round(), 1e-5)

    def test_noise_is_each_token_s_own(self):
        model = recording_model(position_noise=0.5)
        model(X)
        moved = model.encoding.seen[0] - grid_positions((4, 4))
        assert moved.abs().max() <= 0.5 / 3 + 1e-6
        assert moved.unique().numel() == 32

    def test_cls_in_the_center_is_moved_along(self):
        model = recording_model(position_shift=1.75, cls_position="center", num_registers=1)
        logits(model.eval(), torch.zeros(1, 3, 16, 24))
        logits(model.train(), torch.zeros(1, 3, 16, 24))
        still, moved = model.encoding.seen
        assert_close(still[:2], torch.tensor([[0.5, 5 / 6]] * 2), 1e-6)
        assert_close(still[2:], grid_positions((4, 6), reference_shape=(4, 4)), 0)
        assert_close(moved - still, (moved - still)[:1].expand_as(moved), 1e-6)

    def test_a_place_that_changes_is_noticed(self):
        model = recording_model()
        model(X)
        model.cls_position = "center"
        model(X)
        assert [len(positions) for positions in model.encoding.seen] == [16, 17]


class TestInvariance:
    """Rotations that commute depend only on relative positions; a CLS token without a position does not."""

    def change(self, name: str, amounts: dict[str, float] | None = None, **options) -> float:
        """Return the relative change of the logits caused by a shift."""
        torch.manual_seed(0)
        model = small_model(name, **(amounts or {"position_shift": 3.0}), **options).double()
        x = X.double()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(2)  # attention that is far from the same everywhere
        still = logits(model, x)
        model.train()
        return max(float((logits(model, x, seed) - still).abs().max() / still.abs().max()) for seed in range(4))

    @pytest.mark.parametrize("name", ["rope_mixed", "visionllama"])
    def test_commuting_encodings_do_not_see_a_shift(self, name):
        assert self.change(name, pool="mean") < 1e-10
        assert self.change(name, pool="mean", num_registers=2, cls_position="center") < 1e-10

    @pytest.mark.parametrize("name", ["liere8", "liere", "sincos"])
    def test_others_do(self, name):
        assert self.change(name, pool="mean") > 1e-3
        assert self.change(name, cls_position="center") > 1e-3

    @pytest.mark.parametrize("name", ["rope_mixed", "visionllama"])
    def test_cls_sees_it_unless_it_has_a_position(self, name):
        assert self.change(name) > 1e-3
        assert self.change(name, cls_position="center") < 1e-10
        assert self.change(name, cls_position="center", num_registers=2) < 1e-10

    def test_cls_that_sees_keys_before_rotation_knows_positions_from_patches_only(self):
        assert self.change("rope_mixed", depth=1) > 1e-3
        assert self.change("rope_mixed", depth=1, cls_position="unseen") < 1e-10
        assert self.change("rope_mixed", depth=2, cls_position="unseen") > 1e-6  # their queries see CLS's key

    @pytest.mark.parametrize("amount", ["position_stretch", "position_zoom", "position_noise"])
    def test_what_changes_distances_is_seen_by_all(self, amount):
        assert self.change("rope_mixed", {amount: 2.0}, pool="mean") > 1e-3


class TestRefused:
    @pytest.mark.parametrize("name", ["absolute", "none"])
    @pytest.mark.parametrize(("option", "value"), [*AMOUNTS.items(), ("cls_position", "center")])
    def test_encodings_without_coordinates_cannot_move_them(self, name, option, value):
        with pytest.raises(
            ValueError, match=rf"{option}={value!r} changes coordinates, but .* use an encoding"
        ) as error:
            small_model(name, **{option: value})
        assert "\n" not in str(error.value)
        small_model(name, position_shift=0, position_stretch=1, position_zoom=1, position_noise=0, cls_position="none")

    def test_all_that_is_asked_is_named(self):
        with pytest.raises(ValueError, match=r"position_shift=1\.75, position_stretch=1\.5, .*cls_position='unseen'"):
            small_model("absolute", **AMOUNTS, cls_position="unseen")

    @pytest.mark.usefixtures("no_shape_checks")
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"position_shift": -1}, "position_shift must be a finite number >= 0, got -1: use 0 for no change"),
            ({"position_stretch": 0.5}, "position_stretch must be a finite number >= 1, got 0.5"),
            ({"position_zoom": float("inf")}, "position_zoom must be a finite number >= 1, got inf"),
            ({"position_noise": "x"}, "position_noise must be a finite number >= 0, got 'x'"),
            ({"cls_position": "centered"}, "unknown cls_position 'centered': did you mean 'center'?"),
            ({"attention_scale": "logs"}, "unknown attention_scale 'logs': did you mean 'log'?"),
            ({"cls_position": "center", "pool": "mean"}, "cls_position='center' needs a CLS token: use pool='cls'"),
            ({"cls_position": "unseen", "pool": "mean"}, "cls_position='unseen' needs a CLS token: use pool='cls'"),
        ],
    )
    def test_wrong_values_are_named_as_the_argument_is_called(self, options, message):
        with pytest.raises(ValueError) as raised:  # noqa: PT011  (the whole message is looked at)
            small_model("liere8", **options)
        assert str(raised.value).startswith(message)


SCRIPT = """
import sys, warnings
warnings.simplefilter("ignore")
import torch, liere
backend, *names = sys.argv[1:]
torch.set_num_threads(1)
if backend == "inductor":
    import torch._inductor.config
    torch._inductor.config.fallback_random = True  # the random numbers of eager mode
size = dict(image_size=16, patch_size=4, num_classes=3, dim=32, depth=2, heads=2, mlp_dim=32)
amounts = dict(position_shift=1.75, position_stretch=1.2, position_zoom=1.3, position_noise=0.3)
for name in names:
    name, place = name.split("/")
    torch.manual_seed(0)
    model = liere.create_model(encoding=name, cls_position=place, attention_scale="log", **amounts, **size)
    x = torch.randn(2, 3, 16, 24)
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    losses, gradients = [], []
    for run, seed in ((model, 3), (compiled, 3), (compiled, 4)):
        torch.manual_seed(seed)
        losses.append(run(x).square().sum())
        gradients.append(torch.autograd.grad(losses[-1], list(model.parameters())))
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-4, atol=1e-5)
    for eager, traced in zip(*gradients[:2], strict=True):
        torch.testing.assert_close(eager, traced, rtol=1e-3, atol=1e-4)
    assert abs(losses[2] - losses[1]) > 1e-4, "the draw was compiled in"
    torch.compiler.reset()
for options in ({}, {"step": 0.5, "extent": [1.0, 2.0]}, {"step": torch.tensor([0.5, 0.0])}):
    function = lambda p: liere.augment_positions(p, shift=1.5, stretch=1.1, noise=0.1, **options)
    moved = []
    for run in (function, torch.compile(function, backend="eager", fullgraph=True)):
        torch.manual_seed(1)
        moved.append(run(liere.grid_positions((3, 3))))
    torch.testing.assert_close(*moved)
    torch.compiler.reset()
print("agreed on", *names)
"""


def run_compiled(backend: str, *names: str) -> str:
    """Compare a compiled model with an eager one, in a separate process because shape checks break tracing."""
    command = [sys.executable, "-c", SCRIPT, backend, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_compiled_models_train_with_the_draws_of_eager_ones():
    assert run_compiled("aot_eager", "liere8/unseen") == "agreed on liere8/unseen\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sincos", "visionllama", "rope_mixed", "liere5", "liere"])
@pytest.mark.parametrize("place", ["none", "center", "unseen"])
def test_models_compiled_to_machine_code_train_too(name, place):
    assert run_compiled("inductor", f"{name}/{place}") == f"agreed on {name}/{place}\n"


def test_keys_that_are_not_rotated_cannot_be_unseen():
    with pytest.raises(ValueError, match="needs rotated keys, but the encoding SinCos rotates none"):
        small_model("sincos", cls_position="unseen")
