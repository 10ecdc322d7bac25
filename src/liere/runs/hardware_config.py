"""The hardware section of a configuration."""

from __future__ import annotations

from typing import Annotated, Literal

import torch

from liere.config_fields import Count, Few, FewOrZero, Section
from liere.errors import InputError

from pydantic import BeforeValidator, Field  # isort: skip  (`liere.config_fields` reports it if it is missing)

__all__ = ["HardwareConfig"]


class HardwareConfig(Section):
    """The hardware of a run."""

    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    """cpu, gpu, or auto (gpu if available)"""
    devices: Few = 1
    """devices per node; with cpu: processes"""
    nodes: Few = 1
    """number of nodes"""
    strategy: Literal["auto", "ddp"] = "auto"
    """ddp, or auto (ddp for several devices)"""
    precision: Annotated[Literal["32", "bf16-mixed"], BeforeValidator(str)] = "32"
    """32 (fp32) or bf16-mixed"""
    threads: Annotated[Count, Field(le=1024)] | None = None
    """CPU threads of torch; null: torch's default"""
    workers: FewOrZero = 0
    """worker processes that load data; 0: load in the training process"""

    def check(self) -> None:
        """Raise `ValueError` if this machine lacks the hardware."""
        gpus = torch.cuda.device_count() or int(torch.backends.mps.is_available())
        if self.accelerator == "gpu" and not gpus:
            raise InputError("hardware.accelerator is gpu, but torch finds no GPU: use cpu or auto")
        if self.accelerator != "cpu" and 0 < gpus < self.devices:
            raise InputError(f"hardware.devices is {self.devices}, but torch finds {gpus}: use at most that many")
