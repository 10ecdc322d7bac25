"""A process that takes train steps and prints its peak memory: `python -m liere.bench.memory_probe '<json>'`.

The JSON has the fields of `Load`. A process may not return freed memory to the system, so each measurement needs a
fresh process.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from liere.bench.models import random_batch, train_step
from liere.presets import create_model

__all__ = ["Load", "peak_memory", "probe"]

STEPS = 2  # the second step also has the memory that the first one left allocated


@dataclass(frozen=True)
class Load:
    """A model and its training batch.

    Attributes:
        batch_size: Inputs per step.
        model: Arguments of `create_model`.
        threads: Number of torch threads.
    """

    batch_size: int
    model: dict[str, Any] = field(default_factory=dict)
    threads: int = 1


def probe(load: Load) -> dict[str, int]:
    """Take train steps and return the peak memory of this process before and after them, in bytes."""
    torch.set_num_threads(load.threads)
    torch.manual_seed(0)
    model = create_model(**load.model)
    image_size = load.model["image_size"]
    images, labels = random_batch(
        load.batch_size,
        image_size if isinstance(image_size, int) else tuple(image_size),
        num_classes=load.model["num_classes"],
        in_channels=load.model.get("in_channels", 3),
    )
    step = train_step(model, images, labels)
    before = peak_memory()
    for _ in range(STEPS):
        step()
    return {"before": before, "peak": peak_memory()}


def peak_memory() -> int:
    """Return the peak memory of this process, in bytes.

    On Linux it is read from `/proc`; elsewhere from `getrusage`, which may include the program that started this one.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    sys.stdout.write(json.dumps(probe(Load(**json.loads(sys.argv[1])))) + "\n")
