"""Training of sharded and replicated models, compared with one process; run by `test_sharding.py` in each process."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard

from liere import LieRE, apply_rotations, grid_positions
from tests.models import small_model

WAYS = ["whole", "encoding alone", "encoding and whole", "blocks and whole"]


def shard(model: nn.Module, way: str, mesh: DeviceMesh) -> nn.Module:
    if "encoding" in way:
        fully_shard(model.encoding, mesh=mesh)
    if "blocks" in way:
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
    if "whole" in way:
        fully_shard(model, mesh=mesh)
    return model


def whole(x: Tensor) -> Tensor:
    return x.full_tensor() if hasattr(x, "full_tensor") else x


def compare(name: str, found: nn.Module, expected: nn.Module, part: slice, x: Tensor, shares_gradients: bool) -> None:
    """Train one step on parts of a batch, and on the whole of it in one process, and compare everything."""
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (found, expected)]
    for _ in range(2):
        for model, optimizer, own in zip((found, expected), optimizers, (x[part], x), strict=True):
            optimizer.zero_grad()
            model.train()
            model(own).square().mean().backward()
        if not shares_gradients:  # as is everybody's task for parameters that are not sharded
            average_plain_gradients(found)
        for (key, a), b in zip(found.named_parameters(), expected.parameters(), strict=True):
            difference = (whole(a.grad) - b.grad).abs().max()
            assert difference < 1e-5 + 1e-4 * b.grad.abs().max(), f"{name}, {key}: gradients differ by {difference}"
        for model, optimizer in zip((found, expected), optimizers, strict=True):
            optimizer.step()
            model.eval()
        with torch.no_grad():
            for _ in range(2):  # the second time with rotations from the cache
                torch.testing.assert_close(found(x), expected(x), rtol=1e-4, atol=1e-5)


def average_plain_gradients(model: nn.Module) -> None:
    for parameter in model.parameters():
        if not hasattr(parameter, "full_tensor"):
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()


def check_models(names: list[str]) -> None:
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh, x = init_device_mesh("cpu", (world,)), torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    part = slice(rank * 4 // world, (rank + 1) * 4 // world)
    for name in names:
        for way in WAYS:
            model = shard(small_model(name), way, mesh)
            compare(f"{name}, {way}", model, small_model(name), part, x, "whole" in way)


def check_replicas(names: list[str]) -> None:
    rank, world = dist.get_rank(), dist.get_world_size()
    x = torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    part = slice(rank * 4 // world, (rank + 1) * 4 // world)
    for name in names:
        model = nn.parallel.DistributedDataParallel(small_model(name))
        assert not list(model.buffers())
        compare(f"{name}, DDP", model, small_model(name), part, x, True)


def check_rotations() -> None:
    """`rope.rotations()` is not `forward`, around which FSDP gathers parameters."""
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    rope, plain = (LieRE(2, 8, num_heads=2, depth=2) for _ in range(2))
    plain.load_state_dict(rope.state_dict())
    fully_shard(rope, mesh=init_device_mesh("cpu", (world,)))
    assert type(rope.generators).__name__ == "DTensor"
    positions, weight = grid_positions((3, 3)), torch.randn(world, 2, 9, 8)
    rotations = rope.rotations(positions, layer=1)
    assert torch.equal(rotations, plain.rotations(positions, layer=1))
    (apply_rotations(weight[rank], rotations).square() * weight[rank]).sum().backward()
    sum((apply_rotations(w, plain.rotations(positions, layer=1)).square() * w).sum() / world for w in weight).backward()
    torch.testing.assert_close(whole(rope.generators.grad), plain.generators.grad, rtol=1e-4, atol=1e-5)
    q = torch.randn(1, 2, 9, 8)
    for found, expected in zip(rope(q, q, positions), plain(q, q, positions), strict=True):
        assert torch.equal(found, expected)


def check_meta() -> None:
    """Build on `meta`, shard, allocate, initialize."""
    with torch.device("meta"):
        model = small_model("liere8", num_registers=1)
    shard(model, "blocks and whole", init_device_mesh("cpu", (dist.get_world_size(),)))
    model.to_empty(device="cpu")
    torch.manual_seed(dist.get_rank())  # on GPUs, shards draw different numbers anyway
    model.reset_parameters()
    for name, parameter in model.named_parameters():
        assert whole(parameter).isfinite().all(), name
    generators = whole(model.encoding.generators)
    assert 0 <= generators.min() < 0.1
    assert 6.2 < generators.max() < 6.2832
    assert generators.unique().numel() > 0.99 * generators.numel(), "processes drew the same numbers for their shards"
    model(torch.randn(2, 3, 16, 16)).square().mean().backward()


if __name__ == "__main__":
    store, own_rank, world_size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=own_rank, world_size=world_size)
    check_models(["liere8", "rope_mixed", "absolute"])
    check_replicas(["liere8"])
    check_rotations()
    check_meta()
    dist.destroy_process_group()
    print("agreed")
