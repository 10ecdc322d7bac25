"""The CPUs and GPUs that a run asks a cluster for, and a process that is alone with them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from liere.errors import InputError
from liere.runs.config import RunConfig
from liere_command.processes import RANKS

__all__ = ["Resources", "alone", "resources_of", "threads_of"]

LAUNCHERS = ("SLURM_", "PMI_", "OMPI_", "TORCHELASTIC_", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
"""Variables by which programs recognize that they are one of many processes."""


@dataclass(frozen=True)
class Resources:
    """What a run asks for.

    Attributes:
        cpus: Number of CPUs.
        gpus: Number of GPUs, which may be a fraction of one.
    """

    cpus: int
    gpus: float

    def __str__(self) -> str:
        cpus = "1 CPU" if self.cpus == 1 else f"{self.cpus} CPUs"
        return cpus if not self.gpus else f"{cpus} and {self.gpus:g} GPU" + ("s" if self.gpus > 1 else "")


def resources_of(config: RunConfig, *, cpus: int | None, gpus: float | None, has_gpus: bool) -> Resources:
    """Return what a run asks for.

    Args:
        config: Configuration of the run.
        cpus: CPUs per run; None for one per thread and one per worker that loads data.
        gpus: GPUs per run; None for one unless the run uses the CPU.
        has_gpus: Whether a run with `hardware.accelerator: auto` gets a GPU.

    Raises:
        ValueError: If a run that needs a GPU gets none.

    Example:
        >>> from liere.runs.config_file import parse_config
        >>> config = parse_config({"hardware": {"threads": 4, "workers": 2}})
        >>> str(resources_of(config, cpus=None, gpus=None, has_gpus=True))
        '6 CPUs and 1 GPU'
    """
    hardware = config.hardware
    if gpus is None:
        gpus = 1 if hardware.accelerator == "gpu" or (hardware.accelerator == "auto" and has_gpus) else 0
    if hardware.accelerator == "gpu" and not gpus:
        raise InputError(
            "--gpus-per-run is 0, but hardware.accelerator is gpu: ask for a GPU, or train with "
            "--hardware.accelerator cpu"
        )
    return Resources(cpus or (hardware.threads or 1) + hardware.workers, gpus)


def threads_of(config: RunConfig, cpus: int | None) -> int:
    """Return the number of threads of a run that does not specify it: what data loading leaves of its CPUs."""
    return max((cpus or 1) - config.hardware.workers, 1)


@contextmanager
def alone() -> Iterator[None]:
    """Hide from libraries that this process was started as one of many, since each run is a process of its own.

    A Ray cluster, for example, is often started by `srun`, whose variables number its machines.
    """
    hidden = {name: value for name, value in os.environ.items() if name in RANKS or name.startswith(LAUNCHERS)}
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)
