"""The Lightning trainer of a run."""

from __future__ import annotations

from typing import Any

from liere.optional.lightning_import import import_lightning
from liere.runs.config import RunConfig
from liere_command.processes import announce_first_process

pl = import_lightning()

__all__ = ["make_trainer"]


def make_trainer(config: RunConfig, **options: Any) -> Any:
    """Return a Lightning trainer for a run's hardware; the data loaders decide which examples it sees."""
    hardware = config.hardware
    announce_first_process()
    trainer = pl.Trainer(
        accelerator=hardware.accelerator,
        devices=hardware.devices,
        num_nodes=hardware.nodes,
        strategy=hardware.strategy,
        precision="32-true" if hardware.precision == "32" else hardware.precision,
        deterministic=config.training.deterministic,
        use_distributed_sampler=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        logger=False,
        **options,
    )
    # Lightning's SIGTERM handler saves nothing, and its messages to other processes can hang all of them.
    trainer._signal_connector.register_signal_handlers = _leave_signals_alone
    return trainer


def _leave_signals_alone() -> None:
    pass
