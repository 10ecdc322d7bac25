"""The Lightning trainer of a run."""

from __future__ import annotations

import importlib
import os
from typing import Any

from liere.optional.lightning_import import import_lightning
from liere.runs.config import RunConfig
from liere.runs.hardware_config import HardwareConfig
from liere.runs.launchers import find_launcher
from liere_command.processes import announce_first_process

pl = import_lightning()

__all__ = ["make_environment", "make_trainer"]


def make_trainer(config: RunConfig, **options: Any) -> Any:
    """Return a Lightning trainer for a run's hardware; the data loaders decide which examples it sees."""
    hardware = config.hardware
    announce_first_process()
    if hardware.world_size == 1:
        # Lightning takes the rank of a task of SLURM for that of the process in its run.
        _import("lightning.pytorch.utilities.rank_zero").rank_zero_only.rank = 0
    trainer = pl.Trainer(
        accelerator=hardware.accelerator,
        devices=hardware.devices,
        num_nodes=hardware.nodes,
        strategy=_make_strategy(hardware),
        plugins=[make_environment(hardware)],
        precision="32-true" if hardware.precision == "32" else hardware.precision,
        deterministic=config.training.deterministic,
        use_distributed_sampler=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        logger=False,
        inference_mode=not hardware.is_sharded,  # tensors of that mode cannot be gathered again for training
        **options,
    )
    # Lightning's SIGTERM handler saves nothing, and its messages to other processes can hang all of them.
    trainer._signal_connector.register_signal_handlers = _leave_signals_alone
    return trainer


def make_environment(hardware: HardwareConfig) -> Any:
    """Return Lightning's description of who started the processes, and how they find each other."""
    environments = _import("lightning.pytorch.plugins.environments")
    launcher = find_launcher(hardware.devices, hardware.nodes)
    if launcher == "torchrun":
        return environments.TorchElasticEnvironment()
    if launcher == "slurm":
        os.environ.setdefault("SLURM_NTASKS_PER_NODE", str(hardware.devices))  # Lightning requires it
        return environments.SLURMEnvironment(auto_requeue=False)
    return environments.LightningEnvironment()


def _make_strategy(hardware: HardwareConfig) -> Any:
    if hardware.is_sharded:
        strategies = _import("lightning.pytorch.strategies")
        return strategies.ModelParallelStrategy(data_parallel_size=hardware.world_size, tensor_parallel_size=1)
    return "auto" if hardware.world_size == 1 or hardware.strategy == "fsdp" else hardware.strategy


def _import(name: str) -> Any:
    """Return a module of Lightning, whose types are not exported."""
    return importlib.import_module(name)


def _leave_signals_alone() -> None:
    pass
