"""A device that is not there: it computes as the CPU does, and notices whatever would wait for it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from liere.bench.pretended_device import DEVICE, HostWaitError, PretendedDevice, PretendedTensor
from liere.devices import send

READS = {
    "item": lambda x: x.sum().item(),
    "float": lambda x: float(x.sum()),
    "if": lambda x: bool((x > 0).all()),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.detach().numpy(),
    "cpu": lambda x: x.cpu(),
    "to cpu": lambda x: x.to("cpu"),
    "to fp64 on cpu": lambda x: x.to("cpu", torch.float64),
    "copy into host memory": lambda x: torch.zeros(3, 3).copy_(x),
    "copy from host memory": lambda x: x.copy_(torch.zeros(3, 3)),
    "tensor to device": lambda x: torch.zeros(3).to("cuda"),
    "number to device": lambda x: torch.tensor([1.0, 2.0], device="cuda"),
    "as_tensor": lambda x: torch.as_tensor([1.0], device=DEVICE),
    "new_tensor": lambda x: x.new_tensor([1.0]),
    "unpinned without waiting": lambda x: torch.zeros(3).to("cuda", non_blocking=True),
    "pinned, but waiting": lambda x: torch.zeros(3).pin_memory().to("cuda"),
    "nonzero": lambda x: x.nonzero(),
    "where with one argument": lambda x: torch.where(x > 0),
    "equal": lambda x: torch.equal(x, x),
    "allclose": lambda x: torch.allclose(x, x),
    "mask": lambda x: x[x > 0],
    "mask of rows": lambda x: x[x[:, 0] > 0],
    "assignment by mask": lambda x: x.index_put((x > 0,), x[0, 0]),
    "index in host memory": lambda x: x[torch.tensor([0, 2])],
    "masked_select": lambda x: x.masked_select(x > 0),
    "unique": lambda x: x.unique(),
    "unique rows": lambda x: x.unique(dim=0),
    "unique_consecutive": lambda x: x.unique_consecutive(),
    "repeat_interleave": lambda x: x.repeat_interleave(torch.ones(3, dtype=torch.int64, device="cuda"), dim=0),
    "bincount": lambda x: x.flatten().long().bincount(),
    "matrix_exp": torch.matrix_exp,
}


@pytest.mark.parametrize("name", READS)
def test_reading_is_noticed(name):
    with PretendedDevice() as device:
        x = device.tensor(torch.arange(9.0).view(3, 3))
        with pytest.raises(HostWaitError, match=r" waits for the device: compute with tensors"):
            READS[name](x)


def test_reading_inside_an_operator_is_noticed(monkeypatch):
    from liere.rotations import exp_skew, operators

    for name in ("item", "tolist", "cpu", "allclose", "unique", "mask"):
        monkeypatch.setattr(operators.device_kernels, "exp_forward", READS[name])
        with PretendedDevice() as device, pytest.raises(RuntimeError, match=r"waits for the device|not supported"):
            exp_skew(device.tensor(torch.zeros(3, 4, 4)))


def test_other_operations_are_not():
    with PretendedDevice() as device:
        x = device.tensor(torch.arange(9.0).view(3, 3))
        made = [
            torch.where(x > 4, x, 0),
            x.masked_fill(x > 4, 0.0),
            x[:, :1],
            x.index_select(0, torch.arange(2, device="cuda")),
            x.repeat_interleave(2, dim=0),
            x.to("cuda"),
            x.to(DEVICE, torch.float64),
            x * 2.0,
            x.sort(dim=0).values,
            torch.rand(3, device=x.device),
            torch.eye(3, device="cuda"),
            x.new_zeros(2),
            x.new_full((2,), 1.0),
            send(torch.arange(3.0), "cuda"),
            send(torch.arange(3), DEVICE, torch.float64),
        ]
        for out in made:
            assert isinstance(out, PretendedTensor)
            assert out.device == DEVICE
    assert torch.equal(made[-1].near, torch.arange(3, dtype=torch.float64))


def test_gradients_in_place_operations_and_views_are_those_of_the_cpu():
    def compute(x: Tensor, weight: Tensor) -> Tensor:
        y = x.sin()
        y[:, 0] = x[:, 1] * weight
        y.mul_(2).add_(x @ x)
        y.T[1].add_(weight)
        return y.exp().sum()

    x, weight = torch.randn(3, 3, requires_grad=True), torch.randn((), requires_grad=True)
    expected = torch.autograd.grad(compute(x, weight), [x, weight])
    with PretendedDevice() as device:
        far = [device.tensor(x, requires_grad=True), device.tensor(weight, requires_grad=True)]
        found = torch.autograd.grad(compute(*far), far)
        out = device.tensor(torch.empty(3, 3))
        assert torch.mm(far[0].detach(), far[0].detach(), out=out) is out
        assert torch.equal(out.near, x @ x)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a.near, b)


def test_complex_numbers_are_conjugated():
    x = torch.randn(3, dtype=torch.complex64)
    with PretendedDevice() as device:
        far = device.tensor(x)
        found = [far.conj() * far, far.conj().imag, far.real]
    for a, b in zip(found, [x.conj() * x, x.conj().imag, x.real], strict=True):
        torch.testing.assert_close(a.near, b.resolve_neg())


def test_modules_move_and_autocast_has_an_effect(monkeypatch):
    monkeypatch.setattr(PretendedTensor, "known_as", "cpu")
    layer = nn.Linear(3, 2)
    with PretendedDevice() as device:
        device.put(layer)
        assert all(isinstance(p, nn.Parameter) and p.device == DEVICE for p in layer.parameters())
        with torch.autocast("cuda", dtype=torch.bfloat16):
            assert layer(torch.ones(1, 3, device="cuda")).dtype == torch.bfloat16
            with torch.autocast("cuda", enabled=False):
                assert layer(torch.ones(1, 3, device="cuda")).dtype == torch.float32


def test_without_values_there_are_shapes_only():
    with PretendedDevice("meta") as device:
        x = torch.randn(2, 3, device="cuda", requires_grad=True)
        (x @ x.mT).sum().backward()
        assert x.grad.shape == (2, 3)
        assert x.grad.near.device.type == "meta"
        assert device.tensor(torch.ones(2)).near.device.type == "meta"


def test_it_is_needed_for_its_tensors():
    with PretendedDevice() as device:
        x = device.tensor(torch.ones(2))
    with pytest.raises(RuntimeError, match="that is not in use: put it into `with PretendedDevice"):
        x + 1
