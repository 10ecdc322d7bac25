"""A process that does some work and prints its peak memory: `python -m liere.bench.memory_probe JSON PARENT`.

The JSON has the fields of `Load` or `RotationLoad`. The process exits soon after its parent, whose id is given. A
process may not return freed memory to the system, so each measurement needs a fresh process.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from liere.bench.models import random_batch, train_step
from liere.encodings import TransformerShape, create_encoding
from liere.presets import create_model
from liere_command.processes import end_with_parent

__all__ = ["Load", "RotationLoad", "peak_memory", "probe", "probe_rotation"]

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


@dataclass(frozen=True)
class RotationLoad:
    """Queries and keys of one long sequence, rotated by their positions in 3-D, and their gradients.

    Attributes:
        encoding: Name of a rotary encoding.
        tokens: Length of the sequence.
        heads: Heads of queries and keys.
        head_dim: Width of a head.
        threads: Threads of torch; None for torch's choice.
    """

    encoding: str
    tokens: int
    heads: int = 8
    head_dim: int = 64
    threads: int | None = None


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


def probe_rotation(load: RotationLoad) -> dict[str, int]:
    """Rotate queries and keys forward and backward, and return the peak memory of this process before and after it.

    `tensors` are the bytes of queries, keys and their gradients.
    """
    if load.threads is not None:
        torch.set_num_threads(load.threads)
    torch.manual_seed(0)
    rope = create_encoding(load.encoding, TransformerShape((1, 1, 1), load.heads * load.head_dim, load.heads, 1))
    before = peak_memory()
    q, k = (torch.randn(1, load.heads, load.tokens, load.head_dim, requires_grad=True) for _ in range(2))
    rotated = rope(q, k, torch.rand(1, load.tokens, 3))
    torch.autograd.backward(rotated, [torch.ones_like(x) for x in rotated])
    return {"before": before, "peak": peak_memory(), "tensors": 2 * (q.nbytes + k.nbytes)}


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
    end_with_parent(int(sys.argv[2]))
    _given = json.loads(sys.argv[1])
    _found = probe_rotation(RotationLoad(**_given)) if "tokens" in _given else probe(Load(**_given))
    sys.stdout.write(json.dumps(_found) + "\n")
