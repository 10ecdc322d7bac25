"""The machine that a run needs, as its configuration has it."""

from __future__ import annotations

from typing import Annotated, Literal

import torch

from liere.config_fields import Count, Few, FewOrZero, Section
from liere.errors import InputError

from pydantic import BeforeValidator, Field  # isort: skip  (`liere.config_fields` has told what to install)

__all__ = ["HardwareConfig"]


class HardwareConfig(Section):
    """What it runs on."""

    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    """cpu, gpu, or auto: gpu where there is one"""
    devices: Few = 1
    """devices of a node; with cpu: processes"""
    nodes: Few = 1
    """nodes"""
    strategy: Literal["auto", "ddp"] = "auto"
    """ddp, and auto the same for several devices"""
    precision: Annotated[Literal["32", "bf16-mixed"], BeforeValidator(str)] = "32"
    """32 or bf16-mixed"""
    threads: Annotated[Count, Field(le=1024)] | None = None
    """threads of torch on the CPU; null: torch's choice"""
    workers: FewOrZero = 0
    """processes that load data; 0: none"""

    def check(self) -> None:
        """Raise `ValueError` if this machine does not have it."""
        gpus = torch.cuda.device_count() or int(torch.backends.mps.is_available())
        if self.accelerator == "gpu" and not gpus:
            raise InputError("hardware.accelerator is gpu, but torch finds none here: use cpu or auto")
        if self.accelerator != "cpu" and 0 < gpus < self.devices:
            raise InputError(f"hardware.devices is {self.devices}, but torch finds {gpus} here: use at most as many")
