"""Counting what a GPU would do."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from liere.bench import gpu
from liere.bench.devices import check_device, device_name, wait_for
from liere.bench.launches import Kernel, count_launches, fuse
from liere.bench.record import Settings
from liere.bench.roofline import GPUS, LAUNCH_SECONDS, predict_seconds
from liere.rotations import exp_skew
from liere.rotations.polynomial import PRODUCTS
from liere.rotations.squarings import max_level


def test_kernels_bytes_and_operations_are_counted():
    def run(device):
        x = torch.zeros(8, 4, device="cuda")
        y = x.view(4, 8).mT  # no kernel
        (x @ y[:4, :4]).add_(1)
        torch.empty(3, device="cuda")
        x.expand(5, 8, 4) + 0

    zeros, product, added, copied = count_launches(run).kernels
    assert (zeros.name, zeros.bytes) == ("zeros", 8 * 4 * 4)
    assert (product.name, product.flops) == ("mm", 2 * 8 * 4 * 4)
    assert sum(product.writes.values()) == 8 * 4 * 4
    assert (added.name, added.flops, added.bytes) == ("add_", 32, 2 * 32 * 4)
    assert (copied.bytes, copied.fusible) == (32 * 4 + 5 * 32 * 4, True)


def test_operators_are_counted_by_what_they_consist_of():
    def run(device):
        X = torch.zeros(10, 8, 8, device="cuda", requires_grad=True)
        exp_skew(X).sum().backward()

    found = count_launches(run)
    products = PRODUCTS + max_level(8, torch.float32)
    assert sum(k.flops for k in found.kernels if "bmm" in k.name) == (4 * products - 1) * 10 * 2 * 8**3
    assert found.host_waits == 0


def test_matrix_exp_is_counted_by_formula_and_waits():
    def run(device):
        X = torch.zeros(10, 8, 8, device="cuda", requires_grad=True)
        torch.matrix_exp(X).sum().backward()

    found = count_launches(run, squarings=2.0)
    own = [k for k in found.kernels if k.name.startswith("matrix_exp")]
    assert sum(k.flops for k in own if not k.name.endswith("sum")) == (5 + 2) * 10 * 2 * (8**3 + 16**3)
    assert found.host_waits == 2


def test_attention_is_the_fused_kernel_of_a_gpu():
    def run(device):
        q = torch.zeros(2, 3, 5, 8, device="cuda", requires_grad=True)
        F.scaled_dot_product_attention(q, q, q).sum().backward()

    names = [kernel.name for kernel in count_launches(run).kernels]
    assert "_scaled_dot_product_efficient_attention" in names
    assert "_scaled_dot_product_efficient_attention_backward" in names
    assert not any("softmax" in name for name in names)


def test_neighbors_are_fused():
    def kernel(reads, writes, fusible=True):
        return Kernel("", torch.float32, 1, dict.fromkeys(reads, 10), dict.fromkeys(writes, 10), fusible)

    a, b, c, d, e, f = range(6)
    chain = [kernel([a], [b]), kernel([b], [c]), kernel([b, c], [d]), kernel([d], [e], False), kernel([e, b], [f])]
    first, product, last = fuse(chain)
    assert (first.reads, first.writes, first.flops) == ({a: 10}, {b: 10, d: 10}, 3)
    assert product is chain[3]
    assert last is chain[4]


def test_time_is_the_longer_of_computing_and_memory():
    a100 = GPUS[0]
    wide = Kernel("mm", torch.bfloat16, int(312e12), {0: 8}, {1: 8}, False)
    slow = Kernel("add", torch.float32, 8, {0: int(2.039e12)}, {1: 0}, False)
    assert predict_seconds([wide], a100) == pytest.approx(1 + LAUNCH_SECONDS)
    assert predict_seconds([wide, slow], a100) == pytest.approx(2 + 2 * LAUNCH_SECONDS)


def test_every_model_is_counted(monkeypatch):
    monkeypatch.setattr(gpu, "QUICK_SITUATIONS", [gpu.Situation("vit_tiny", 8, 4, 2, torch.bfloat16, depth=1)])
    monkeypatch.setattr(gpu, "BLOCKS", (2, 8))
    answer = gpu.measure(Settings(quick=True))
    steps = [row for row in answer.rows if row["part"] == "step"]
    counted = {(row["model"], row["how"]): row for row in steps}
    assert [name for name, how in counted if how == "liere"] == list(gpu.ENCODINGS)
    assert {how for name, how in counted if name == "liere8"} == {"liere", "torch.matrix_exp", "published"}
    for (name, how), row in counted.items():
        assert row["host_waits"] == (0 if how == "liere" else 2)
        assert row["launches"] > 20
        assert row["ratio"]["A100"] >= (0.9 if name == "none" else 1)
    assert counted["liere64", "published"]["bytes"] > counted["liere64", "torch.matrix_exp"]["bytes"]
    forms = [row for row in answer.rows if row["part"] == "forms"]
    assert [row["block_size"] for row in forms] == [2, 8]
    for row in forms:
        assert row["fused"]["stored_bytes"] >= row["operators"]["stored_bytes"] >= 0
    assert any("PREDICTED, NOT MEASURED" in note for note in answer.notes)


def test_devices():
    assert check_device("cpu") == torch.device("cpu")
    assert device_name(torch.device("cpu")) == "cpu"
    wait_for(torch.device("cpu"))
    with pytest.raises(ValueError, match="unknown device 'nowhere'"):
        check_device("nowhere")
