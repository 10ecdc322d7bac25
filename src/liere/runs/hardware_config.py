"""The hardware section of a configuration."""

from __future__ import annotations

from typing import Annotated, Literal

import torch

from liere.config_fields import Count, Few, FewOrZero, Section
from liere.errors import InputError
from liere.machine import available_cores
from liere.runs.launchers import check_launcher

from pydantic import BeforeValidator, Field  # isort: skip  (`liere.config_fields` reports it if it is missing)

__all__ = ["HardwareConfig"]

MOST_PER_CORE = {"workers": 32, "devices": 4, "threads": 16}
"""More would only exhaust the memory, or the processes of the machine. Workers may wait for files, others compute."""
LEAST_ALLOWED = {"workers": 8, "devices": 8, "threads": 128}  # a run of a large machine may be tested on a small one


class HardwareConfig(Section):
    """The hardware of a run."""

    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    """cpu, gpu, or auto (gpu if available)"""
    devices: Few = 1
    """devices per node; with cpu: processes"""
    nodes: Few = 1
    """number of nodes"""
    strategy: Literal["auto", "ddp", "fsdp"] = "auto"
    """several devices: ddp (each has the whole model), fsdp (each has a part of the parameters), or auto (ddp)"""
    precision: Annotated[Literal["32", "bf16-mixed"], BeforeValidator(str)] = "32"
    """32 (fp32) or bf16-mixed"""
    threads: Annotated[Count, Field(le=1024)] | None = None
    """CPU threads of torch; null: torch's default"""
    workers: FewOrZero = 0
    """worker processes that load data; 0: load in the training process"""

    @property
    def world_size(self) -> int:
        """Number of processes, one per device."""
        return self.devices * self.nodes

    @property
    def is_sharded(self) -> bool:
        """Whether the parameters are sharded over several processes."""
        return self.strategy == "fsdp" and self.world_size > 1

    def check(self, *, dry: bool = False) -> None:
        """Raise `ValueError` if the hardware does not fit this machine, or the processes that were started.

        Args:
            dry: Whether the run is not going to be started.
        """
        check_launcher(self.devices, self.nodes, dry=dry)
        if self.is_sharded and torch.torch_version.TorchVersion(torch.__version__) < "2.9":
            raise InputError(
                f"hardware.strategy fsdp needs torch 2.9 or newer, but this is {torch.__version__}: update torch, or "
                "use ddp"
            )
        gpus = torch.cuda.device_count() or int(torch.backends.mps.is_available())
        if self.accelerator == "gpu" and not gpus:
            raise InputError("hardware.accelerator is gpu, but torch finds no GPU: use cpu or auto")
        if self.accelerator != "cpu" and 0 < gpus < self.devices:
            raise InputError(f"hardware.devices is {self.devices}, but torch finds {gpus}: use at most that many")
        cores = available_cores()
        processes = 0 if self.accelerator != "cpu" and gpus else self.devices
        wanted = {"workers": self.workers, "devices": processes, "threads": self.threads or 1}
        for name, number in wanted.items():
            most = max(MOST_PER_CORE[name] * cores, LEAST_ALLOWED[name])
            if number > most:
                raise InputError(f"hardware.{name} is {number}, too many for {cores} cores: use at most {most}")
