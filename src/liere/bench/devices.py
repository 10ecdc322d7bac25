"""The device that a benchmark runs on."""

from __future__ import annotations

from typing import Any

import torch

from liere.errors import InputError

__all__ = ["check_device", "device_name", "wait_for"]


def check_device(name: str) -> torch.device:
    """Return the device of this name.

    Raises:
        ValueError: If torch knows no such device, or finds none on this machine.
    """
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"unknown device {name!r}: use cpu, cuda or mps") from None
    module: Any = getattr(torch, device.type, None)
    if device.type == "cpu":
        return device
    if not hasattr(module, "synchronize") or not module.is_available() or (device.index or 0) >= module.device_count():
        raise InputError(
            f"--device is {name}, but torch {torch.__version__} finds no such device on this machine: use --device "
            "cpu, or install the build of torch for it"
        )
    return device


def device_name(device: torch.device) -> str:
    """Return a readable name.

    Example:
        >>> device_name(torch.device("cpu"))
        'cpu'
    """
    return torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)


def wait_for(device: torch.device) -> None:
    """Return when the device has done everything; the CPU always has."""
    if device.type != "cpu":
        getattr(torch, device.type).synchronize()
