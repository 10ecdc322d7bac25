"""Whether the values of a tensor may be read, and whether custom operators may run on it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

__all__ = [
    "also_ordinary",
    "kernels_may_run",
    "known_sizes",
    "values_are_at_hand",
    "values_are_visible",
    "without_autocast",
]

_ordinary: tuple[type[Tensor], ...] = (Tensor, nn.Parameter)


def values_are_visible(x: Tensor) -> bool:
    """Return whether Python may branch on the values of `x`.

    It may not while `torch.compile`, `torch.export`, `torch.jit.trace` or `torch.func` transforms record operations on
    the tensor, nor for tensors without data (`meta`).
    """
    return not (
        torch.compiler.is_compiling()
        or torch.jit.is_tracing()  # type: ignore[attr-defined]
        or x.device.type == "meta"
        or type(x) not in _ordinary  # fake and wrapped tensors are subclasses
        or torch._C._functorch.is_functorch_wrapped_tensor(x)
    )


def values_are_at_hand(x: Tensor) -> bool:
    """Return whether the values of `x` may be read without waiting: they are visible, and in host memory."""
    return x.device.type == "cpu" and values_are_visible(x)


@contextmanager
def also_ordinary(*kinds: type[Tensor]) -> Iterator[None]:
    """Treat tensors of these types like ordinary ones, so that the kernels run on them.

    For tensors that stand for those of a device that is not there: to count operations, and for tests. It applies to
    the whole process.
    """
    global _ordinary
    before = _ordinary
    _ordinary = (*before, *kinds)
    try:
        yield
    finally:
        _ordinary = before


def kernels_may_run(*tensors: Tensor) -> bool:
    """Return whether the custom operators of this library may be called on these tensors.

    They may run wherever values are visible, and in `torch.compile`, which treats them as opaque. Exported models have
    to run without this library. The operators have no forward-mode derivative.
    """
    if forward_ad._current_level >= 0 and any(forward_ad.unpack_dual(x).tangent is not None for x in tensors):
        return False
    if all(values_are_visible(x) for x in tensors):
        return True
    return torch.compiler.is_dynamo_compiling() and not torch.compiler.is_exporting()


def without_autocast(device: torch.device) -> torch.autocast | nullcontext[None]:
    """Return a context in which products keep their precision."""
    return nullcontext() if device.type == "meta" else torch.autocast(device.type, enabled=False)


def known_sizes() -> AbstractContextManager[None]:
    """Return a context in which `torch.jit.trace` does not warn about every size that Python reads.

    Sizes become constants of the traced model, as the documentation says: a warning for each of them would hide the
    warnings that matter.
    """
    return _without_tracer_warnings() if torch.jit.is_tracing() else nullcontext()  # type: ignore[attr-defined]


@contextmanager
def _without_tracer_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", torch.jit.TracerWarning)  # type: ignore[attr-defined]
        yield
