"""Which tests of a run were asked for, and on which devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from liere.runs.conditions import Condition
from liere.runs.run import Run

__all__ = ["make_conditions", "on_devices"]


def make_conditions(
    sizes: Sequence[int],
    *,
    policies: Sequence[str] = ("",),
    shuffle: Sequence[str] = (),
    attention_scales: Sequence[str] = ("",),
    placements: Sequence[str] = ("",),
) -> list[Condition]:
    """Return all combinations; what is shuffled is tested as well as it is.

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
    """Return a run that is tested on other devices than it was trained on.

    Args:
        run: The run.
        devices: How many; with cpu: processes.
        accelerator: `"auto"`, `"cpu"` or `"gpu"`; None as trained.

    Raises:
        ValueError: If this machine does not have them.
    """
    changes = {"devices": devices, "nodes": 1} | ({} if accelerator is None else {"accelerator": accelerator})
    hardware = run.config.hardware.model_copy(update=changes)
    hardware.check()
    return replace(run, config=run.config.model_copy(update={"hardware": hardware}))
