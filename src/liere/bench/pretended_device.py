"""A device that is not there: tensors that say they are on `cuda`, and whose operations can be watched.

Code that depends on the device of a tensor takes the paths that it would take on a GPU. The values, if there are any,
are in host memory. `FakeTensorMode` would do for shapes, but its backward pass needs a build of torch for CUDA.

    with PretendedDevice() as device:
        x = torch.zeros(3, device="cuda")
        x.sum().item()  # HostWaitError: on a GPU, the program would wait here
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch._library.custom_ops import OPDEFS
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

from liere.tracing import also_ordinary

__all__ = ["DEVICE", "HostWaitError", "PretendedDevice", "PretendedTensor"]

DEVICE = torch.device("cuda", 0)
aten = torch.ops.aten

# Operations whose result has a size that depends on values, or is a value for Python.
READS = {
    aten._local_scalar_dense,
    aten.item,
    aten.allclose,
    aten.bincount,
    aten.equal,
    aten.is_nonzero,
    aten.linalg_eigh,
    aten.linalg_matrix_exp,
    aten.masked_select,
    aten.nonzero,
    aten._unique2,
    aten.unique_consecutive,
    aten.unique_dim,
}


# What torch leaves to the next operation, which would not notice it here.
AT_ONCE = {aten._conj.default: aten.conj_physical.default, aten._neg_view.default: aten.neg.default}

_active: list[PretendedDevice] = []


class HostWaitError(RuntimeError):
    """On a real device, the program would wait for it here."""


class PretendedTensor(Tensor):
    """A tensor on `DEVICE`, whose values, if any, are those of another one.

    For torch itself it is on `meta`, since a device without a driver cannot take part in a backward pass. If `known_as`
    is `cpu`, `torch.autocast` has an effect, but copies to the host are not noticed.

    Args:
        near: The values; on `meta` if there are none.
        requires_grad: Whether to record operations.
    """

    near: Tensor
    known_as = "meta"
    device = DEVICE
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, near: Tensor, requires_grad: bool = False) -> PretendedTensor:
        """Return a tensor that torch asks for its operations."""
        self = Tensor._make_wrapper_subclass(
            cls,
            near.shape,
            strides=near.stride(),
            storage_offset=near.storage_offset(),
            dtype=near.dtype,
            device=torch.device(cls.known_as),
            requires_grad=requires_grad,
        )
        self.near = near
        return self

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        if not _active:
            raise RuntimeError(f"{func} on a pretended device that is not in use: put it into `with PretendedDevice()`")
        with _active[-1]._watching():  # called by another kind of tensor, such as a nested one
            return func(*args, **(kwargs or {}))

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]
        return f"PretendedTensor({self.near!r})"

    def data_ptr(self) -> int:
        """Return the address of the values."""
        return self.near.data_ptr()


class PretendedDevice(TorchDispatchMode):
    """Let tensors be made on `DEVICE`, and watch what happens there.

    Args:
        near: Device of the values: `"cpu"`, or `"meta"` for none.
        operators: Whether the operators of this library run; else ordinary operations of torch take their place, as
            they do in `torch.compile`.
    """

    def __init__(self, near: str = "cpu", *, operators: bool = True) -> None:
        super().__init__()
        self.operators = operators
        self.near = torch.device(near)
        self._contexts: list[ExitStack] = []

    def launched(self, func: Any, args: Any, kwargs: dict[str, Any], out: Any) -> None:
        """Notice an operation on the device. A subclass may count it."""

    def waits(self, what: str) -> None:
        """Raise `HostWaitError`, since the program would wait for the device. A subclass may count it instead."""
        raise HostWaitError(f"{what} waits for the device: compute with tensors, without reading values")

    def put(self, module: nn.Module) -> nn.Module:
        """Move the parameters and buffers of a module to the device, in place."""
        for part in module.modules():
            for name, parameter in part._parameters.items():
                if parameter is not None:
                    part._parameters[name] = nn.Parameter(self.tensor(parameter.detach()), parameter.requires_grad)
            for name, buffer in part._buffers.items():
                part._buffers[name] = None if buffer is None else self.tensor(buffer)
        return module

    def tensor(self, x: Tensor, requires_grad: bool = False) -> PretendedTensor:
        """Return a copy of a tensor, on the device."""
        with _disable_current_modes():
            return PretendedTensor(x.detach().to(self.near, copy=True), requires_grad)

    def __enter__(self) -> PretendedDevice:
        context = ExitStack()
        if self.operators:
            context.enter_context(also_ordinary(PretendedTensor))
        context.enter_context(_Calls(self))
        context.enter_context(mock.patch("torch.autocast", _autocast))
        if not torch.cuda.is_available():
            context.enter_context(mock.patch("torch.cuda._lazy_init"))  # torch would look for a driver
        context.callback(_active.pop)
        _active.append(self)
        self._contexts.append(context)
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._contexts.pop().close()

    @contextmanager
    def _watching(self) -> Iterator[None]:
        """Watch operations again, which torch does not while it calls `__torch_dispatch__`."""
        super().__enter__()
        try:
            yield
        finally:
            super().__exit__(None, None, None)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        is_here = any(isinstance(x, PretendedTensor) for x in tree_leaves((args, kwargs)))
        if not (is_here or _is_pretended(kwargs.get("device"))):
            return func(*args, **kwargs)
        if func.namespace == "liere":  # an operator of this library: watch what it consists of
            with self._watching():
                return OPDEFS[func._schema.name]._init_fn(*args, **kwargs)
        if func.overloadpacket not in READS and func._can_decompose():  # inside an operator, torch does not do so
            with torch._C.DisableTorchFunction(), self._watching():
                return func.decompose(*args, **kwargs)
        self._check(func, args, kwargs)
        target = kwargs.get("device")
        leaves = target is not None and not _is_pretended(target, PretendedTensor.known_as)
        if target is not None and not leaves:
            kwargs = {**kwargs, "device": self.near}
        inside: dict[int, PretendedTensor] = {}

        def enter(x: Any) -> Any:
            if isinstance(x, PretendedTensor):
                inside[id(x.near)] = x
                return x.near
            return x

        def leave(x: Any) -> Any:
            if leaves or not isinstance(x, Tensor):
                return x
            return (
                inside[id(x)] if id(x) in inside else PretendedTensor(x)
            )  # an input that was written to, or a new one

        args, kwargs = tree_map(enter, args), tree_map(enter, kwargs)
        out = AT_ONCE.get(func, func)(*args, **kwargs)
        # For torch, tensors are on `meta`, so it does not know that they need no copy.
        if func is not aten._to_copy.default or not is_here or kwargs.get("dtype") not in (None, args[0].dtype):
            self.launched(func, args, kwargs, out)
        return tree_map(leave, out)

    def _check(self, func: Any, args: Any, kwargs: dict[str, Any]) -> None:
        """Notice what would wait for the device."""
        packet, target = func.overloadpacket, kwargs.get("device")
        if packet in READS or (func is aten.repeat_interleave.Tensor and kwargs.get("output_size") is None):
            self.waits(str(packet))
        if packet in (aten.index, aten.index_put, aten.index_put_, aten._unsafe_index):
            for index in args[1]:
                if index is not None and index.dtype in (torch.bool, torch.uint8):
                    self.waits("a mask as an index")
        if packet is aten._to_copy and target is not None and not _is_pretended(target, PretendedTensor.known_as):
            self.waits("a copy to the host")
        for x in tree_leaves((args, kwargs)):
            if isinstance(x, Tensor) and not isinstance(x, PretendedTensor) and x.ndim:
                is_sent = getattr(x, "pinned", False) and kwargs.get("non_blocking")
                if not is_sent:
                    self.waits(f"{packet} with a tensor in host memory")


def _is_pretended(device: torch.device | None, known_as: str = "meta") -> bool:
    return device is not None and device.type in (DEVICE.type, known_as)


def _names_it(device: Any) -> bool:
    return isinstance(device, str | torch.device) and torch.device(device).type == DEVICE.type


def _autocast(device_type: str, *args: Any, **kwargs: Any) -> torch.amp.autocast:
    return torch.amp.autocast("cpu" if device_type == DEVICE.type else device_type, *args, **kwargs)


class _Calls(TorchFunctionMode):
    """Notice what torch does without dispatching an operation: tensors from Python's numbers, and back."""

    def __init__(self, device: PretendedDevice) -> None:
        super().__init__()
        self.device = device

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        is_here = bool(args) and isinstance(args[0], PretendedTensor)
        if func is Tensor.to:  # torch would ask a driver which `cuda` is meant
            args = tuple(DEVICE if _names_it(x) else x for x in args)
            kwargs = {name: DEVICE if _names_it(x) else x for name, x in kwargs.items()}
        if func is Tensor.pin_memory and not is_here:
            pinned = args[0].clone()
            pinned.pinned = True
            return pinned
        is_made = func in (torch.tensor, torch.as_tensor, Tensor.new_tensor) and not isinstance(args[-1], Tensor)
        if is_made and (is_here or _names_it(kwargs.get("device"))):
            self.device.waits(f"{func.__name__}(..., device)")
            return self.device.tensor(torch.tensor(args[-1], dtype=kwargs.get("dtype")))
        if func in (Tensor.tolist, Tensor.numpy) and is_here:
            self.device.waits(func.__name__)
            return func(args[0].near)
        return func(*args, **kwargs)
