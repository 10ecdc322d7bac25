"""The least time that kernels take on a GPU, from the numbers of its data sheet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from liere.bench.launches import Kernel

__all__ = ["GPUS", "LAUNCH_SECONDS", "Gpu", "predict_seconds"]

LAUNCH_SECONDS = 3e-6
"""From the end of a kernel to the beginning of the next one, roughly: an assumption, the same for all."""


@dataclass(frozen=True)
class Gpu:
    """Peak rates of a GPU, from NVIDIA's data sheet, without sparsity.

    Attributes:
        name: Name of the GPU.
        flops: Floating-point operations per second, by data type. Products in fp32 do not use
            TF32.
        bytes: Bytes of memory read or written per second.
    """

    name: str
    flops: dict[torch.dtype, float]
    bytes: float


GPUS = [
    Gpu(
        "A100",
        {torch.float32: 19.5e12, torch.float64: 9.7e12, torch.bfloat16: 312e12, torch.float16: 312e12},
        2.039e12,
    ),
    Gpu(
        "H100",
        {torch.float32: 67e12, torch.float64: 34e12, torch.bfloat16: 989e12, torch.float16: 989e12},
        3.35e12,
    ),
]


def predict_seconds(kernels: Iterable[Kernel], gpu: Gpu) -> float:
    """Return the time in which a GPU could do this: each kernel at peak rate or bandwidth, whichever takes longer.

    Example:
        >>> product = Kernel("mm", torch.bfloat16, 2 * 8192**3, {0: 2 * 8192**2}, {1: 2 * 8192**2}, False)
        >>> f"{1000 * predict_seconds([product], GPUS[0]):.2f} ms"
        '3.53 ms'
    """
    return sum(
        LAUNCH_SECONDS
        + max(kernel.flops / gpu.flops.get(kernel.dtype, gpu.flops[torch.float32]), kernel.bytes / gpu.bytes)
        for kernel in kernels
    )
