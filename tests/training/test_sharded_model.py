"""Sharded models of a run, here with the shards of one process; `test_many_processes.py` has two."""

from __future__ import annotations

import copy

import pytest
import torch

pytest.importorskip("tests.training.requirements")

from liere.encodings.rotary import RotaryEncoding
from liere.runs.optimizer_config import OptimizerConfig
from liere.training.optimizer import make_optimizer
from liere.training.sharded_model import is_sharded, shard, shard_optimizer_state, whole_state_dict
from tests.models import small_model


@pytest.fixture(scope="module", autouse=True)
def mesh():
    """The mesh of this process alone."""
    dist = pytest.importorskip("torch.distributed")
    if not dist.is_available() or not dist.is_gloo_available():
        pytest.skip("torch without gloo")
    from torch.distributed.device_mesh import init_device_mesh

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


@pytest.fixture
def sharded(mesh):
    model = small_model("liere8")
    shard(model, mesh)
    return model


def steps(model, optimizer, number: int = 2, seed: int = 0) -> None:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(number):
        optimizer.zero_grad()
        model(torch.randn(2, 3, 16, 16, generator=generator)).square().mean().backward()
        optimizer.step()


def test_all_parameters_are_sharded(sharded):
    assert is_sharded(sharded)
    assert not is_sharded(small_model("liere8"))
    assert all(hasattr(parameter, "full_tensor") for parameter in sharded.parameters())


def test_the_whole_state_is_that_of_a_plain_model(sharded):
    plain = small_model("liere8")
    found = whole_state_dict(sharded)
    assert found.keys() == plain.state_dict().keys()
    assert all(torch.equal(tensor, found[name]) for name, tensor in plain.state_dict().items())
    assert all(type(tensor) is torch.Tensor and not tensor.requires_grad for tensor in found.values())


def test_rotations_are_computed_once_per_step(sharded, monkeypatch):
    original, calls = RotaryEncoding._rotations, []

    def counting(self, *arguments, **options):
        calls.append(None)
        return original(self, *arguments, **options)

    monkeypatch.setattr(RotaryEncoding, "_rotations", counting)
    steps(sharded, torch.optim.SGD(sharded.parameters()), number=3)
    assert len(calls) == 3


@pytest.mark.parametrize("name", ["adam", "muon"])
def test_optimizers_step_shards_as_they_step_whole_matrices(sharded, name):
    config, plain = OptimizerConfig(name=name, learning_rate=0.01), small_model("liere8")
    for model in (sharded, plain):
        steps(model.train(), make_optimizer(model, config))
    found = whole_state_dict(sharded)
    for key, tensor in plain.state_dict().items():
        torch.testing.assert_close(found[key], tensor, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["adam", "muon"])
def test_the_state_of_an_optimizer_is_sharded_like_its_parameters(sharded, name):
    config, plain = OptimizerConfig(name=name, learning_rate=0.01), small_model("liere8")
    whole, found = make_optimizer(plain, config), make_optimizer(sharded, config)
    steps(plain.train(), whole)
    saved = copy.deepcopy(whole.state_dict())
    found.load_state_dict(saved | {"state": shard_optimizer_state(found, saved["state"])})
    for parameter, state in found.state.items():
        for key, value in state.items():
            assert hasattr(value, "full_tensor") == (key != "step")
            assert value.shape == (() if key == "step" else parameter.shape)
    with torch.no_grad():
        for mine, theirs in zip(sharded.parameters(), plain.parameters(), strict=True):
            mine.to_local().copy_(theirs)
    for model, optimizer in ((sharded.train(), found), (plain, whole)):
        steps(model, optimizer, seed=1)
    state = whole_state_dict(sharded)
    for key, tensor in plain.state_dict().items():
        torch.testing.assert_close(state[key], tensor, rtol=1e-5, atol=1e-6)
