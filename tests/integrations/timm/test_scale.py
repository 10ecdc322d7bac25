"""Converted models in training at scale: sharded, replicated, averaged, and built on `meta`."""

from __future__ import annotations

import copy

import pytest
import timm
import torch
from timm.utils import ModelEmaV3
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from liere.integrations.timm import convert
from tests.integrations.timm.families import FAMILIES, assert_same, images, make, with_random_generators

CHOSEN = [
    (family, start)
    for family in FAMILIES
    for name, start in [
        ("vit_small_patch16_224", "identity"),
        ("vit_small_patch16_rope_mixed_224", "identity"),
        ("vit_small_patch16_dinov3", "rope"),
    ]
    if family.id == name
]
chosen = pytest.mark.parametrize(("family", "start"), CHOSEN, ids=lambda value: getattr(value, "id", value))


def rotated_model(family, start: str) -> nn.Module:
    return with_random_generators(convert(make(family), "liere8", start))


@pytest.fixture(scope="module")
def alone():
    """A process group of this process."""
    dist = pytest.importorskip("torch.distributed")
    if not dist.is_available() or not dist.is_gloo_available():
        pytest.skip("torch without gloo")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def whole(x: torch.Tensor) -> torch.Tensor:
    return x.full_tensor() if hasattr(x, "full_tensor") else x


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("way", ["blocks", "encoding and blocks", "replicas"])
@chosen
def test_sharded_and_replicated_models_train_as_others_do(family, start, way):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    plain = rotated_model(family, start).train()
    model = copy.deepcopy(plain)
    if way == "replicas":
        assert not any("encoding" in name for name, _ in model.named_buffers())
        model = nn.parallel.DistributedDataParallel(model)
    else:
        mesh = init_device_mesh("cpu", (1,))
        parts = [*model.blocks, *([model.encoding] if "encoding" in way else [])]
        for part in parts:
            fully_shard(part, mesh=mesh)
        fully_shard(model, mesh=mesh)
    x = images(family)
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.01) for each in (model, plain)]
    for _ in range(2):
        for each, optimizer in zip((model, plain), optimizers, strict=True):
            optimizer.zero_grad()
            each.train()(x).square().mean().backward()
            optimizer.step()
        pairs = zip(*(optimizer.param_groups[0]["params"] for optimizer in optimizers), strict=True)
        for found, expected in pairs:
            torch.testing.assert_close(whole(found.detach()), expected.detach(), rtol=1e-4, atol=1e-5)
        with torch.no_grad():
            for _ in range(2):  # the second time with rotations from the cache
                assert_same(model.eval()(x), plain.eval()(x), 1e-4)


@chosen
def test_averaged_models_use_their_own_generators(family, start):
    model, x = rotated_model(family, start), images(family)
    averages = ModelEmaV3(model, decay=0.5), AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.5))
    expected = copy.deepcopy(model.state_dict())
    with torch.no_grad():
        for average in averages:
            average.eval()(x)  # rotations are kept from here on
        averages[1].update_parameters(model)  # the first time it copies
        for step in range(2):
            for parameter in model.parameters():
                parameter.add_(0.05 * torch.randn_like(parameter))
            averages[0].update(model)
            averages[1].update_parameters(model)
            expected = {
                name: (value + expected[name]) / 2 if value.is_floating_point() else value
                for name, value in model.state_dict().items()
            }
            right = convert(make(family), "liere8", start)
            right.load_state_dict(expected)
            for average in averages:
                assert_same(average(x), right(x), 1e-4)
            assert step == 0 or not torch.equal(model(x), right(x))


@chosen
def test_models_are_converted_on_meta_and_loaded(family, start):
    expected = rotated_model(family, start)
    with torch.device("meta"):
        empty = timm.create_model(
            family.name, img_size=48, embed_dim=32, num_heads=2, depth=2, num_classes=5, **family.options
        )
    if start == "rope":
        return  # the RoPE has no numbers to start from
    model = convert(empty, "liere8", start)
    assert model.encoding.generators.is_meta
    model.to_empty(device="cpu")
    with torch.no_grad():
        model.encoding.generators.fill_(torch.nan)
    model.encoding.reset_parameters()
    assert not model.encoding.generators.any()
    model.load_state_dict(expected.state_dict())
    if getattr(model, "rope", None) is None:  # tables of a RoPE are computed by timm's init_non_persistent_buffers
        with torch.no_grad():
            assert torch.equal(model.eval()(images(family)), expected(images(family)))
