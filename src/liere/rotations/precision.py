"""Matrix products in full precision, regardless of torch's settings."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

__all__ = ["full_precision"]


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Prevent products from running in half precision, TF32 or bfloat16, which is too coarse for distant positions.

    The setting applies to the whole process.
    """
    lowered = [setting for setting in _precisions() if setting.value not in (setting.full, "none")]
    with torch.autocast(device.type, enabled=False):
        try:
            for setting in lowered:
                setting.write(setting.full)
            yield
        finally:
            for setting in lowered:
                setting.write(setting.value)


class _Precision(NamedTuple):
    """A torch setting for products of fp32 matrices."""

    write: Callable[[str], None]
    value: str
    full: str


def _precisions() -> list[_Precision]:
    if not hasattr(torch.backends.cuda.matmul, "fp32_precision"):  # before torch 2.9, one setting for all backends
        return [_Precision(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision(), "highest")]
    backends: list[Any] = [getattr(backend, "matmul", None) for backend in (torch.backends.cuda, torch.backends.mkldnn)]
    return [
        _Precision(functools.partial(setattr, backend, "fp32_precision"), backend.fp32_precision, "ieee")
        for backend in backends
        if hasattr(backend, "fp32_precision")
    ]
