"""Rotations cached at inference are reused, but never after a change."""

from __future__ import annotations

import copy
import io

import pytest
import torch

from liere import LieRE, RotaryEncoding, grid_positions
from liere.encodings import rotary
from liere.encodings.cache import RotationCache, Snapshot
from tests.models import ROTARY, small_model


@pytest.fixture
def made(monkeypatch):
    """Count how often rotations are computed."""
    calls = []
    original = rotary.position_rotations

    def counted(positions, generators):
        calls.append(len(generators))
        return original(positions, generators)

    monkeypatch.setattr(rotary, "position_rotations", counted)
    return calls


def logits(model, x):
    with torch.no_grad():
        return model(x)


X = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", ROTARY)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_rotations_are_made_once(name, mode, made):
    model = small_model(name)
    with mode():
        first, second = model(X), model(X.clone())
    assert torch.equal(first, second)
    assert len(made) == 1


CHANGES = {
    "optimizer": lambda model: _step(model),
    "in place": lambda model: _without_grad(lambda: model.encoding.generators.mul_(1.1)),
    "through .data": lambda model: model.encoding.generators.data.mul_(1.1),
    "one entry through .data": lambda model: model.encoding.generators.data[-1, 0, 0, 0, :1].add_(0.1),
    "numpy": lambda model: pytest.importorskip("numpy") and model.encoding.generators.detach().numpy().__imul__(1.1),
    "another .data": lambda model: setattr(model.encoding.generators, "data", model.encoding.generators.data * 1.1),
    "load_state_dict": lambda model: model.load_state_dict(small_model("liere8", seed=1).state_dict()),
    "assigned state": lambda model: model.load_state_dict(small_model("liere8", seed=1).state_dict(), assign=True),
    "another parameter": lambda model: setattr(
        model.encoding, "generators", torch.nn.Parameter(1.1 * model.encoding.generators.detach())
    ),
    "reset": lambda model: model.encoding.reset_parameters(),
    "double": lambda model: model.double(),
}


def _step(model):
    model(X).square().sum().backward()
    torch.optim.SGD(model.parameters(), lr=1e-3).step()


def _without_grad(function):
    with torch.no_grad():
        function()


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_noticed(change):
    model = small_model("liere8")
    before = logits(model, X)
    CHANGES[change](model)
    x = X.double() if change == "double" else X
    after = logits(model, x)
    fresh = small_model("liere8").to(after.dtype)
    fresh.load_state_dict(model.state_dict())
    assert torch.equal(after, logits(fresh, x))
    assert not torch.equal(after.float(), before)


def test_other_positions_are_noticed(made):
    model = small_model("liere8")
    larger = torch.randn(1, 3, 24, 16)
    first = logits(model, X)
    expected = logits(small_model("liere8"), larger)
    del made[:]
    assert torch.equal(logits(model, larger), expected)
    assert torch.equal(logits(model, X), first)
    assert len(made) == 1  # two sizes take turns
    rope = LieRE(2, 8, num_heads=2, depth=2).eval()
    positions = grid_positions((3, 3))
    with torch.no_grad():
        before = [R.clone() for R in rope.layer_rotations(positions, 2)]
        positions.data.mul_(0.5)
        after = list(rope.layer_rotations(positions, 2))
    assert not torch.equal(before[1], after[1])
    assert torch.equal(after[1], rope.rotations(positions, 1))


def test_training_makes_its_own(made):
    model = small_model("liere8")
    logits(model, X)
    model.train()
    assert len(model.encoding._cache) == 0
    for _ in range(2):
        model(X).sum().backward()
    assert model.encoding.generators.grad.abs().amax(dim=(1, 2, 3, 4)).gt(0).all()
    assert len(made) == 3
    model.eval()
    model(X).sum().backward()  # gradients in eval mode, as for saliency
    assert len(made) == 4


def test_inference_does_not_poison_training():
    model = small_model("liere8")
    with torch.inference_mode():
        model(X)
    fine = small_model("liere8")
    x, y = X.clone().requires_grad_(), X.clone().requires_grad_()
    model.encoding.requires_grad_(False)
    fine.encoding.requires_grad_(False)
    model(x).square().sum().backward()  # the cached rotations are now part of a graph
    fine(y).square().sum().backward()
    assert torch.equal(x.grad, y.grad)
    model.train().requires_grad_(True)
    model(X).sum().backward()
    assert model.encoding.generators.grad is not None


def test_copies_begin_with_nothing_and_go_their_own_way():
    model = small_model("liere8")
    before = logits(model, X)
    twin = copy.deepcopy(model)
    assert len(model.encoding._cache) == 1
    assert len(twin.encoding._cache) == 0
    with torch.no_grad():
        twin.encoding.generators.mul_(1.1)
    assert not torch.equal(logits(twin, X), before)
    assert torch.equal(logits(model, X), before)


def test_kept_rotations_are_not_saved():
    model = small_model("liere8")
    names = set(model.state_dict())

    def size():
        file = io.BytesIO()
        torch.save(model, file)
        return len(file.getvalue())

    before = size()
    logits(model, X)
    assert set(model.state_dict()) == names
    assert size() == before


def test_writing_to_what_is_kept_is_noticed():
    model = small_model("liere8")
    before = logits(model, X)
    with torch.no_grad():
        next(model.encoding.layer_rotations(grid_positions((4, 4)), 3)).mul_(2)
    assert torch.equal(logits(model, X), before)
    model._known_positions[1].mul_(2)
    assert torch.equal(logits(model, X), before)


def test_a_layer_alone_keeps_its_rotations_too(made):
    rope = LieRE(2, 8, num_heads=2, depth=3).eval()
    q, positions = torch.randn(1, 2, 9, 8), grid_positions((3, 3))
    with torch.no_grad():
        first = [rope(q, q, positions, layer=layer)[0] for layer in range(3)]
        again = [rope(q, q, positions.clone(), layer=layer)[0] for layer in range(3)]
    assert len(made) == 3
    for a, b in zip(first, again, strict=True):
        assert torch.equal(a, b)


def test_an_attribute_of_an_encoding_of_ones_own():
    class Pinwheel(RotaryEncoding):
        speed = 1.0

        def skew_generators(self, layer=0):
            return torch.tensor([[0.0, -self.speed], [self.speed, 0.0]]).expand(2, 1, 4, 2, 2)

    rope = Pinwheel(2, 8, block_size=2, num_blocks=4, share_heads=True, share_layers=True).eval()
    positions = grid_positions((3, 3))
    slow = next(rope.layer_rotations(positions, 1))
    rope.speed = 2.0
    assert not torch.equal(next(rope.layer_rotations(positions, 1)), slow)


@pytest.mark.parametrize("block_size", [2, 8])
def test_positions_of_each_example_are_not_kept(block_size):
    rope = LieRE(2, 8, block_size=block_size).eval()
    q = torch.randn(3, 1, 5, 8)
    with torch.no_grad():
        rope(q, q, torch.rand(3, 5, 2), stream=False)
        rope.rotations(torch.rand(3, 5, 2))
        assert len(rope._cache) == 0
        rope(q, q, torch.rand(1, 5, 2), stream=False)  # one set, with a batch axis
        assert len(rope._cache) == 1


def test_clear_cache_forgets(made):
    model = small_model("liere8")
    logits(model, X)
    model.encoding.clear_cache()
    logits(model, X)
    assert len(made) == 2


def test_the_least_recently_used_go_first():
    cache, tensors = RotationCache(2), [torch.full((1,), float(k)) for k in range(3)]
    for k in (0, 1):
        cache.keep([tensors[k]], [tensors[k]])
    assert cache.find([tensors[0]]) is not None
    cache.keep([tensors[2]], [])
    assert cache.find([tensors[1]]) is None
    assert cache.find([torch.zeros(1)])[0] is tensors[0]


class OnDevice(torch.Tensor):
    """A tensor in host memory that claims to be on another device."""

    device = torch.device("cuda")


def test_elsewhere_versions_and_addresses_are_compared():
    tensor = torch.zeros(3).as_subclass(OnDevice)
    snapshot = Snapshot(tensor)
    assert snapshot.matches(tensor)
    assert not snapshot.matches(torch.zeros(3).as_subclass(OnDevice))
    tensor.add_(0)
    assert not snapshot.matches(tensor)
    with torch.inference_mode():
        nameless = torch.zeros(3).as_subclass(OnDevice)
    assert not Snapshot(nameless).matches(nameless)
    positions = torch.arange(16.0).view(8, 2).as_subclass(OnDevice)
    assert not Snapshot(positions[:4]).matches(positions[::2])
