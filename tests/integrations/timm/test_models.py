"""What people do with timm models works with converted ones: copies, checkpoints, threads, features, optimizers."""

from __future__ import annotations

import copy
import io
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import timm
import torch
from timm.optim import create_optimizer_v2
from torch import Tensor, nn

from liere.integrations.mixing import mix_in
from liere.integrations.timm import convert
from tests.integrations.timm.families import (
    FAMILIES,
    FLEXIBLE,
    OTHER_GRID,
    assert_same,
    converted,
    images,
    make,
    naflex_batch,
    with_random_generators,
)

every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.id)
CHOSEN = [
    (family, start)
    for family, start in [
        (FAMILIES[0], "identity"),
        *((family, "rope") for family in FAMILIES if family.name in ("vit_small_patch16_rope_mixed_224",)),
        *((family, "identity") for family in FAMILIES if family.name == "vit_small_patch16_rope_mixed_ape_224"),
        *((family, "rope") for family in FAMILIES if family.name == "vit_small_patch16_dinov3"),
        (FLEXIBLE[0], "identity"),
    ]
]
chosen = pytest.mark.parametrize(("family", "start"), CHOSEN, ids=lambda value: getattr(value, "id", value))


def rotated_model(family, start: str = "identity", **options) -> nn.Module:
    """Return a converted model with random generators that takes images of any size."""
    sized = {} if family.is_flexible else {"dynamic_img_size": True}
    return with_random_generators(convert(make(family, **sized, **options), "liere8", start))


def gradients(model: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}


@every_family
def test_copies_and_pickles(family):
    _, rotated = converted(family)
    with_random_generators(rotated)
    x = images(family)
    expected = rotated(x)
    file = io.BytesIO()
    torch.save(rotated, file)
    file.seek(0)
    for other in (
        copy.deepcopy(rotated),
        pickle.loads(pickle.dumps(rotated)),
        torch.load(file, weights_only=False),
    ):
        assert type(other) is type(rotated)
        assert torch.equal(other(x), expected)
        with torch.no_grad():
            other.encoding.generators.zero_()
        assert not torch.equal(other(x), expected)
    assert torch.equal(rotated(x), expected)


@chosen
def test_gradient_checkpoints_see_the_positions_of_their_own_forward_pass(family, start):
    rotated = rotated_model(family, start).train()
    crops = images(family), images(family, OTHER_GRID)  # as in training with several crops: both, then backward

    def loss() -> Tensor:
        rotated.zero_grad()
        return sum(rotated(crop).square().mean() for crop in crops)

    loss().backward()
    expected = gradients(rotated)
    rotated.set_grad_checkpointing()
    calls = count_calls(rotated.blocks[0])
    total = loss()
    assert len(calls) == 2
    total.backward()
    assert len(calls) == 4  # recomputed
    assert gradients(rotated).keys() == expected.keys()
    for name, gradient in gradients(rotated).items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-5, rtol=1e-4)


def count_calls(block: nn.Module) -> list[int]:
    calls: list[int] = []
    attention = next(module for module in block.modules() if hasattr(module, "q_norm"))
    attention.register_forward_pre_hook(lambda *_: calls.append(1))
    return calls


@chosen
def test_intermediate_features(family, start):
    model = make(family, **({} if family.is_flexible else {"dynamic_img_size": True}))
    rotated = convert(model, "liere8", start)
    x = images(family, OTHER_GRID)
    with torch.no_grad():
        expected, expected_list = model.forward_intermediates(x, norm=True)
        found, found_list = rotated.forward_intermediates(x, norm=True)
        assert_same(found, expected)
        for one, other in zip(found_list, expected_list, strict=True):
            assert_same(one, other)
        (early,) = rotated.forward_intermediates(x, [0], stop_early=True, intermediates_only=True)
        assert torch.equal(early, rotated.forward_intermediates(x, [0], intermediates_only=True)[0])
        rotated.prune_intermediate_layers([0])
        assert_same(rotated.forward_intermediates(x, [0], intermediates_only=True)[0], early)


def test_intermediate_features_of_images_of_different_sizes():
    model, rotated = converted(FLEXIBLE[0])
    batch = naflex_batch([(3, 4), (2, 2)])
    with torch.no_grad():
        expected = model.forward_intermediates(batch, output_fmt="NLC", output_dict=True)
        found = rotated.forward_intermediates(batch, output_fmt="NLC", output_dict=True)
    for one, other in zip(found["image_intermediates"], expected["image_intermediates"], strict=True):
        assert_same(one, other)


@chosen
def test_threads_do_not_disturb_each_other(family, start):
    rotated = rotated_model(family, start)
    inputs = [images(family), images(family, OTHER_GRID), images(family, (4, 4))] * 4

    def infer(x: Tensor) -> Tensor:
        with torch.no_grad():
            return rotated(x)

    expected = [infer(x) for x in inputs]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(infer, inputs))
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_inference_keeps_rotations_until_something_changes():
    rotated = rotated_model(FAMILIES[0])
    x = images(FAMILIES[0])
    with torch.no_grad():
        first = rotated(x)
        assert len(rotated.encoding._cache) == 1
        assert torch.equal(rotated(x), first)
        assert len(rotated.encoding._cache) == 1
        with_random_generators(rotated)
        assert not torch.equal(rotated(x), first)
    with torch.inference_mode():
        rotated(images(FAMILIES[0], OTHER_GRID))
    rotated.train()(images(FAMILIES[0], OTHER_GRID)).sum().backward()


def test_optimizers_of_timm_leave_generators_without_weight_decay():
    rotated = rotated_model(FAMILIES[0])
    optimizer = create_optimizer_v2(rotated, opt="adamw", lr=1e-3, weight_decay=0.1, layer_decay=0.5)
    groups = [
        group
        for group in optimizer.param_groups
        if any(parameter is rotated.encoding.generators for parameter in group["params"])
    ]
    assert [(group["weight_decay"], group["lr_scale"]) for group in groups] == [(0.0, 1.0)]


def test_subclasses_are_converted_too():
    class Own(timm.models.VisionTransformer):
        def forward_head(self, x, pre_logits=False):
            return 2 * super().forward_head(x, pre_logits)

    model = Own(img_size=48, embed_dim=32, num_heads=2, depth=2, num_classes=5).eval()
    rotated = convert(model)
    x = images(FAMILIES[0])
    assert isinstance(rotated, Own)
    assert type(rotated).__name__ == "RotatedOwn"
    assert torch.equal(rotated(x), model(x))
    assert type(copy.deepcopy(rotated)) is type(rotated) is mix_in(type(rotated)._mixin, Own)


def test_features_only():
    name = "vit_small_patch16_224"
    small = {"img_size": 48, "embed_dim": 32, "num_heads": 2, "depth": 3}
    features = timm.create_model(name, features_only=True, out_indices=(0, 2), **small)
    features.model = with_random_generators(convert(features.model))
    found = features(images(FAMILIES[0]))
    assert [tuple(one.shape) for one in found] == [(2, 32, 3, 3)] * 2
    assert_same(found[1], features.model.forward_intermediates(images(FAMILIES[0]), [2], intermediates_only=True)[0])
