"""Models on a device that is not the CPU: no step waits for it, and the numbers are those of the CPU."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import liere
from liere import layers
from liere.bench.pretended_device import DEVICE, HostWaitError, PretendedDevice, PretendedTensor
from liere.encodings import layer_rotation
from liere.encodings.registry import list_encodings

SIZE = {"dim": 48, "depth": 2, "heads": 1, "mlp_dim": 16, "image_size": 12, "patch_size": 4, "num_classes": 3}
BLOCKS = ["liere2", "liere3", "liere4", "liere8", "liere16", "liere"]
OPTIONS = {
    "placement": {"position_shift": 1.75},
    "all changes of positions": {
        "position_shift": 0.5,
        "position_stretch": 1.2,
        "position_zoom": 1.5,
        "position_noise": 0.3,
    },
    "shared heads": {"share_heads": True},
    "shared layers": {"share_layers": True},
    "recompute": {"recompute": True},
    "CLS at the center": {"cls_position": "center", "num_registers": 1},
    "unseen CLS, log scale": {"cls_position": "unseen", "attention_scale": "log"},
    "dropped paths, normalized queries": {"drop_path": 0.3, "dropout": 0.1, "qk_norm": True, "pool": "mean"},
}


def make(encoding: str, dtype: torch.dtype = torch.float32, **options: object) -> liere.vit.VisionTransformer:
    torch.manual_seed(0)
    model = liere.create_model(None, encoding=encoding, **SIZE, **options)
    return model.to(dtype)


def batch(dtype: torch.dtype = torch.float32, size: int = 12) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(2, 3, size, size, generator=generator, dtype=dtype), torch.tensor([0, 2])


def step(model: torch.nn.Module, images: Tensor, labels: Tensor, **given: object) -> Tensor:
    """Take a train step without an optimizer, and return the logits."""
    logits = model.train()(images, **given)
    F.cross_entropy(logits, labels).backward()
    return logits


@pytest.mark.parametrize("encoding", ["none", "absolute", "sincos", "visionllama", "rope_mixed", *BLOCKS])
def test_no_encoding_waits_and_all_agree_with_the_cpu(encoding):
    model = make(encoding, torch.float64)
    there = copy.deepcopy(model)
    images, labels = batch(torch.float64)
    logits = step(model, images, labels)
    with torch.no_grad():
        evaluated = model.eval()(batch(torch.float64, 16)[0])
    with PretendedDevice() as device:
        device.put(there)
        far = step(there, device.tensor(images), device.tensor(labels))
        with torch.no_grad():
            again = [there.eval()(device.tensor(batch(torch.float64, 16)[0])) for _ in range(2)]
    torch.testing.assert_close(far.near.detach(), logits.detach(), rtol=1e-9, atol=1e-9)
    for found in again:  # the second time, rotations are kept
        torch.testing.assert_close(found.near, evaluated, rtol=1e-9, atol=1e-9)
    for (name, far_one), one in zip(there.named_parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(far_one.grad.near, one.grad, rtol=1e-8, atol=1e-9, msg=lambda m, n=name: f"{n}: {m}")


def test_every_encoding_is_among_them():
    tried = {"none", "absolute", "sincos", "visionllama", "rope_mixed", "liere", "liere<b>"}
    assert set(list_encodings()) <= tried


@pytest.mark.parametrize("name", OPTIONS)
def test_no_option_waits(name):
    model = make("rope_mixed" if name == "placement" else "liere8", **OPTIONS[name])
    images, labels = batch(size=16)
    with PretendedDevice() as device:
        device.put(model)
        step(model, device.tensor(images), device.tensor(labels))
        assert all(p.grad is None or p.grad.near.isfinite().all() for p in model.parameters())


def test_gradient_checkpointing_does_not_wait():
    model = make("liere4")
    model.set_grad_checkpointing()
    images, labels = batch()
    with PretendedDevice() as device:
        step(device.put(model), device.tensor(images), device.tensor(labels))


@pytest.mark.parametrize("encoding", ["sincos", "liere8"])
def test_given_positions_and_spacings_do_not_wait(encoding):
    model = make(encoding, spacing=(1.0, 2.0))
    images, labels = batch()
    with PretendedDevice() as device:
        device.put(model)
        here = device.tensor(images), device.tensor(labels)
        step(model, *here, positions=torch.rand(2, 9, 2, device=DEVICE))
        step(model, *here, positions=torch.rand(9, 2))
        step(model, *here, spacing=(2.0, 2.0))
        step(model, *here, spacing=torch.tensor([[1.0, 2.0], [2.0, 2.0]]))
        step(model, *here, spacing=torch.rand(2, 2, device=DEVICE) + 1)


@pytest.mark.parametrize("encoding", ["absolute", "sincos", "visionllama", "rope_mixed", "liere8", "liere"])
def test_autocast_does_not_wait_and_rotations_stay_precise(encoding, monkeypatch):
    monkeypatch.setattr(PretendedTensor, "known_as", "cpu")
    model = make(encoding)
    images, labels = batch()
    with PretendedDevice() as device:
        device.put(model)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = step(model, device.tensor(images), device.tensor(labels))
            assert logits.dtype == torch.bfloat16
            if isinstance(model.encoding, liere.LieRE):
                positions = liere.grid_positions((3, 3))
                far = model.encoding.rotations(device.tensor(positions))
                assert far.dtype == torch.float32
                near = make(encoding).encoding.rotations(positions)
                torch.testing.assert_close(far.near, near, rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("block_size", "stream"),
    [(2, None), (3, True), (4, True), (8, None), (8, True), (16, False), (48, None), (48, True)],
)
def test_positions_of_each_sample_do_not_wait_and_agree_with_the_cpu(block_size, stream):
    torch.manual_seed(0)
    rope = liere.LieRE(3, 48, num_heads=2, block_size=block_size, dtype=torch.float64)
    there = copy.deepcopy(rope)
    q, k = torch.randn(2, 2, 2, 6, 48, dtype=torch.float64).unbind()
    positions = torch.rand(2, 5, 3, dtype=torch.float64)

    def rotate(rope: liere.LieRE, *tensors: Tensor) -> list[Tensor]:
        q, k, positions = tensors
        rotated = rope(q, k, positions, num_prefix_tokens=1, stream=stream)
        crossed = rope(q, k[..., 1:, :], None, positions, k_num_prefix_tokens=0, stream=stream)[1]
        loss = sum((x * x.sin()).sum() for x in (*rotated, crossed))
        return [*rotated, crossed, *torch.autograd.grad(loss, [rope.generators, *tensors])]

    near = rotate(rope, *(x.clone().requires_grad_() for x in (q, k, positions)))
    with PretendedDevice() as device:
        far = rotate(device.put(there), *(device.tensor(x, requires_grad=True) for x in (q, k, positions)))
    for found, expected in zip(far, near, strict=True):
        torch.testing.assert_close(found.near.detach(), expected.detach(), rtol=1e-8, atol=1e-8)


def test_packed_and_changed_positions_do_not_wait():
    with PretendedDevice() as device:
        packed = liere.packed_positions([(2, 3), (1, 2)], reference_shape=(3, 3), num_prefix_tokens=1, device=DEVICE)
        assert packed.mask().near.sum() == 7**2 + 3**2
        rope = device.put(liere.LieRE(2, 16, num_heads=2, block_size=4))
        q = torch.randn(2, 10, 16, device=DEVICE)
        rope(q, q, packed.positions)
        liere.augment_positions(packed.positions, shift=1.0, stretch=1.5, zoom=1.1, noise=0.5)
        source = torch.Generator().manual_seed(0)
        moved = liere.augment_positions(packed.positions, shift=1.0, step=0.5, extent=(1.0, 2.0), generator=source)
    near = packed.positions.near
    source = torch.Generator().manual_seed(0)
    assert torch.equal(
        moved.near, liere.augment_positions(near, shift=1.0, step=0.5, extent=(1.0, 2.0), generator=source)
    )


def test_the_cache_of_rotations_does_not_wait_and_notices_changes(monkeypatch):
    monkeypatch.setattr("liere.encodings.rotary.memory_may_be_reused", lambda: False)  # no FSDP here
    model = make("liere8").eval()
    images, _ = batch()
    with PretendedDevice() as device, torch.no_grad():
        device.put(model)
        here = device.tensor(images)
        first, second = model(here), model(here)
        assert torch.equal(first.near, second.near)
        assert len(model.encoding._cache) == 1
        model.encoding.generators.mul_(0.5)
        assert not torch.equal(model(here).near, first.near)


@pytest.mark.parametrize("encoding", ["absolute", "liere8"])
def test_an_item_in_the_forward_pass_is_noticed(encoding, monkeypatch):
    def with_item(self: layers.Block, x: Tensor, *rest: object) -> Tensor:
        assert x.abs().sum().item() >= 0
        return original(self, x, *rest)

    original = layers.Block.forward
    monkeypatch.setattr(layers.Block, "forward", with_item)
    _expect_wait(encoding)


def test_an_item_in_the_backward_pass_is_noticed(monkeypatch):
    from liere.rotations import device_kernels

    original = device_kernels.pull_back_uniformly
    monkeypatch.setattr(
        device_kernels, "pull_back_uniformly", lambda X, G: original(X, G * bool((G == G).all().item()))
    )
    _expect_wait("liere8")


def test_a_copy_to_the_host_in_the_rotations_is_noticed(monkeypatch):
    def by_way_of_the_host(xs, R, prefix):
        return original(xs, R.cpu().to(DEVICE, non_blocking=True), prefix)

    original = layer_rotation.rotate_together
    monkeypatch.setattr(layer_rotation, "rotate_together", by_way_of_the_host)
    _expect_wait("liere8")


def _expect_wait(encoding: str) -> None:
    model = make(encoding)
    images, labels = batch()
    with PretendedDevice() as device:
        device.put(model)
        with pytest.raises(HostWaitError):
            step(model, device.tensor(images), device.tensor(labels))


@pytest.mark.parametrize(("encoding", "operators"), [("liere2", set()), ("liere8", {"rotations", "rotate"})])
def test_compiled_models_get_ordinary_operations_where_these_are_better(encoding, operators, monkeypatch):
    """Larger blocks use operators, which a compiler does not look into; blocks of 2 are left to it."""
    seen = set()

    class Watching(PretendedDevice):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.namespace == "liere":
                seen.add(func._schema.name.removeprefix("liere::"))
            return super().__torch_dispatch__(func, types, args, kwargs)

        def waits(self, what):
            """Copies are constants of a compiled model."""

    model = make(encoding)
    images, _ = batch()
    with Watching(operators=False) as device, torch.no_grad():
        device.put(model)
        here = device.tensor(images)
        for name in ("is_compiling", "is_dynamo_compiling"):
            monkeypatch.setattr(torch.compiler, name, lambda: True)
        model(here)
        monkeypatch.undo()
    assert seen == operators
