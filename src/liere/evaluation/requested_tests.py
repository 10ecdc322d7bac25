"""The requested test conditions of a run, and the devices to test on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from liere.errors import InputError, check_least, whole_number
from liere.machine import available_cores
from liere.runs.conditions import Condition
from liere.runs.run import Run

__all__ = ["make_conditions", "on_devices"]

ACCELERATORS = ("auto", "cpu", "gpu")


def make_conditions(
    sizes: Sequence[int],
    *,
    policies: Sequence[str] = ("",),
    shuffle: Sequence[str] = (),
    attention_scales: Sequence[str] = ("",),
    placements: Sequence[str] = ("",),
) -> list[Condition]:
    """Return all combinations of conditions; shuffled ones in addition to those in the original order.

    Example:
        >>> [one.name for one in make_conditions([32, 48], shuffle=["patches"])]
        ['32', '32-shuffled-patches', '48', '48-shuffled-patches']
    """
    return [
        Condition(size, policy, shuffled, scale, placement)
        for size in sizes
        for policy in policies
        for scale in attention_scales
        for placement in placements
        for shuffled in ("", *shuffle)
    ]


def on_devices(run: Run, devices: int, accelerator: str | None) -> Run:
    """Return the run configured for other devices than it was trained on.

    Args:
        run: The run.
        devices: Number of devices; with cpu: processes.
        accelerator: `"auto"`, `"cpu"` or `"gpu"`; None for the one used in training.

    Raises:
        ValueError: If this machine lacks these devices, or one of the values is unknown.
    """
    devices = whole_number("devices", devices)
    check_least("devices", devices, 1)
    if accelerator not in (None, *ACCELERATORS):
        raise InputError(f"unknown accelerator {accelerator!r}: choose from {', '.join(ACCELERATORS)}")
    changes: dict[str, object] = {"devices": devices, "nodes": 1, "strategy": "auto"}
    changes |= {} if accelerator is None else {"accelerator": accelerator}
    if run.config.hardware.threads is not None:  # it may have been trained on a larger machine
        changes["threads"] = min(run.config.hardware.threads, available_cores())
    hardware = run.config.hardware.model_copy(update=changes)
    hardware.check()
    return replace(run, config=run.config.model_copy(update={"hardware": hardware}))
