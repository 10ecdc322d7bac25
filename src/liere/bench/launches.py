"""Counting what a GPU would do: kernels, bytes and floating-point operations, without one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from liere.bench.pretended_device import PretendedDevice

__all__ = ["Kernel", "Launches", "count_launches", "fuse"]

aten = torch.ops.aten
# They allocate memory, or only describe it in another way, like the views that torch marks as such.
WITHOUT_KERNEL = {
    aten._reshape_alias,
    aten._unsafe_view,
    aten.detach,
    aten.empty,
    aten.empty_like,
    aten.empty_strided,
    aten.lift_fresh,
    aten.new_empty,
    aten.new_empty_strided,
}
# Terms of the Taylor polynomial of degree 18 of `torch.matrix_exp`, and the norm up to which it needs no squarings.
TAYLOR_PRODUCTS, TAYLOR_RADIUS = 5, 3.01


class Kernel(NamedTuple):
    """One kernel: what it does, and which memory it reads and writes."""

    name: str
    dtype: torch.dtype
    flops: int
    reads: dict[int, int]
    """Bytes by memory."""
    writes: dict[int, int]
    fusible: bool
    """Whether a compiler joins it with its neighbors: it computes each entry from the entries at the same place."""

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return sum(self.reads.values()) + sum(self.writes.values())


class Launches(PretendedDevice):
    """Count the kernels of what runs in it, on tensors without values.

    Args:
        operators: Whether the operators of this library run; else ordinary operations of torch take their place.
        squarings: Mean number of squarings of `torch.matrix_exp`, which depends on values.
    """

    def __init__(self, *, operators: bool = True, squarings: float = 0.0) -> None:
        super().__init__("meta", operators=operators)
        self.squarings = squarings
        self.kernels: list[Kernel] = []
        self.host_waits = self.forward_kernels = 0
        self._alive: list[Any] = []  # so that no memory gets the number of another one

    def waits(self, what: str) -> None:
        """Count a wait for the device."""
        self.host_waits += 1

    def launched(self, func: Any, args: Any, kwargs: dict[str, Any], out: Any) -> None:
        """Count the kernels of an operation."""
        if func.is_view or func.overloadpacket in WITHOUT_KERNEL:
            return
        read = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor) and x is not kwargs.get("out")]
        written = [x for x in tree_leaves(out) if isinstance(x, Tensor)]
        if not any(x.numel() for x in written):
            return
        self._alive += [*read, *written]
        reads, writes = _memory(read), _memory(written)
        name, dtype = func.overloadpacket.__name__, written[0].dtype
        if func.overloadpacket is aten.linalg_matrix_exp:
            self.kernels += self._matrix_exp(read[0], reads, writes)
            return
        formula = flop_registry.get(getattr(aten, name.removesuffix("_"), None))  # the same if it writes in place
        # Operations other than products are limited by memory: one for each entry is close enough.
        flops = max(x.numel() for x in written) if formula is None else formula(*args, **kwargs, out_val=out)
        largest = max(written, key=Tensor.numel)
        fusible = formula is None and all(x.ndim <= largest.ndim and x.numel() <= largest.numel() for x in read)
        self.kernels.append(Kernel(name, dtype, int(flops), reads, writes, fusible))

    def stored_bytes(self) -> int:
        """Return the bytes that kernels after the first `forward_kernels` read and those wrote."""
        written = {key: size for kernel in self.kernels[: self.forward_kernels] for key, size in kernel.writes.items()}
        read = {key for kernel in self.kernels[self.forward_kernels :] for key in kernel.reads}
        return sum(size for key, size in written.items() if key in read)

    def _matrix_exp(self, X: Tensor, reads: dict[int, int], writes: dict[int, int]) -> Iterator[Kernel]:
        """Yield kernels as in torch's implementation: five products, sums between them, then squarings.

        Each squaring gathers the matrices that need it and puts them back.
        """
        size, count = X.nbytes, X.shape[:-2].numel()
        product = 2 * count * X.shape[-1] ** 3
        here, there = {id(X): size}, {-id(X): size}
        for _ in range(TAYLOR_PRODUCTS):
            yield Kernel("matrix_exp product", X.dtype, product, {**here, 1: size}, there, False)
            yield Kernel("matrix_exp sum", X.dtype, 5 * X.numel(), {id(X): 5 * size}, {-id(X): 2 * size}, False)
        whole = math.ceil(self.squarings)
        for _ in range(whole):
            part = self.squarings / whole
            own = {id(X): int(part * size)}, {-id(X): int(part * size)}
            yield Kernel("matrix_exp gather", X.dtype, 0, *own, False)
            yield Kernel("matrix_exp squaring", X.dtype, int(part * product), *own, False)
            yield Kernel("matrix_exp scatter", X.dtype, 0, *own, False)

    def __enter__(self) -> Launches:
        super().__enter__()
        self._contexts[-1].enter_context(mock.patch("torch.nn.functional.scaled_dot_product_attention", _attention))
        return self


def count_launches(call: Callable[[Launches], Any], **options: Any) -> Launches:
    """Return what a function of the device launches there."""
    with Launches(**options) as device:
        call(device)
    return device


def _attention(q: Tensor, k: Tensor, v: Tensor, *, dropout_p: float = 0.0, scale: float | None = None) -> Tensor:
    """Return what the fused kernel of a GPU does; torch would not choose it for a device that is not there."""
    fused = aten._scaled_dot_product_efficient_attention
    return fused(q, k, v, None, True, dropout_p, False, scale=scale)[0]


def _memory(tensors: list[Tensor]) -> dict[int, int]:
    """Return the bytes of each memory that tensors have; entries that are repeated by a stride of 0 count once."""
    found: dict[int, int] = {}
    for x in tensors:
        own = math.prod(size for size, stride in zip(x.shape, x.stride(), strict=True) if stride) * x.element_size()
        key = x.untyped_storage()._cdata
        found[key] = max(found.get(key, 0), own)
    return found


def fuse(kernels: list[Kernel]) -> list[Kernel]:
    """Return kernels as a compiler would join them: neighbors that compute entry by entry become one.

    It then reads only what others wrote, and writes only what others read.
    """
    groups: list[list[Kernel]] = []
    for kernel in kernels:
        if groups and kernel.fusible and groups[-1][-1].fusible:
            groups[-1].append(kernel)
        else:
            groups.append([kernel])
    last_read = {key: index for index, group in enumerate(groups) for kernel in group for key in kernel.reads}
    return [_join(group, index, last_read) for index, group in enumerate(groups)]


def _join(group: list[Kernel], index: int, last_read: dict[int, int]) -> Kernel:
    if len(group) == 1:
        return group[0]
    reads: dict[int, int] = {}
    writes: dict[int, int] = {}
    for kernel in group:
        reads |= {key: size for key, size in kernel.reads.items() if key not in writes}
        writes |= kernel.writes
    needed = {key: size for key, size in writes.items() if last_read.get(key, len(last_read)) > index}
    flops = sum(kernel.flops for kernel in group)
    return Kernel("fused", group[-1].dtype, flops, reads, needed or dict(list(writes.items())[-1:]), True)
