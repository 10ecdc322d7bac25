"""What do positions of each sample cost? A train step over point clouds, and the memory of many tokens.

Every cloud has its own points, so that nothing is shared: each rotation meets one query and one key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from liere.bench.memory import run_probe
from liere.bench.memory_probe import RotationLoad
from liere.bench.models import train_step
from liere.bench.point_model import PointTransformer, random_clouds
from liere.bench.race import race, spread
from liere.bench.record import Answer, Settings

__all__ = ["ENCODINGS", "LOADS", "QUICK_LOADS", "QUICK_SITUATION", "SITUATION", "Situation", "measure"]

ENCODINGS = ("none", "rope_mixed", "liere8")
NUM_CLASSES = 40


@dataclass(frozen=True)
class Situation:
    """The clouds, and the model that is trained on them.

    Attributes:
        clouds: Clouds of a step.
        points: Points of a cloud.
        depth: Layers of the model.
        dim: Width of a token.
        heads: Heads of a layer.
    """

    clouds: int
    points: int
    depth: int
    dim: int = 384
    heads: int = 6

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.clouds} clouds of {self.points:,} points, width {self.dim}, {self.depth} layers"


SITUATION = Situation(16, 1024, 6)
QUICK_SITUATION = Situation(2, 128, 1)
LOADS = [RotationLoad("rope_mixed", 200_000), RotationLoad("liere8", 200_000)]
QUICK_LOADS = [RotationLoad("rope_mixed", 2_000), RotationLoad("liere8", 2_000)]


def measure(settings: Settings) -> Answer:
    """Time a train step with each encoding, and measure the memory of rotating many tokens."""
    rounds = settings.choose_rounds(full=5, quick=3)
    situation, loads = (QUICK_SITUATION, QUICK_LOADS) if settings.quick else (SITUATION, LOADS)
    notes = ["Clouds are uniform in the unit cube; generators are new. none: the same model without positions."]
    rows = _time(situation, rounds, settings)
    if settings.device.type == "cpu":
        return Answer(rounds, [*rows, *_weigh(loads, settings)], notes)
    return Answer(rounds, rows, [*notes, "Memory is measured on the CPU only."])


def _time(situation: Situation, rounds: int, settings: Settings) -> list[dict[str, Any]]:
    torch.manual_seed(0)
    clouds, labels = random_clouds(situation.clouds, situation.points, num_classes=NUM_CLASSES)
    models = {
        name: PointTransformer(
            name, dim=situation.dim, depth=situation.depth, heads=situation.heads, num_classes=NUM_CLASSES
        )
        for name in ENCODINGS
    }
    clouds, labels = clouds.to(settings.device), labels.to(settings.device)
    steps = {name: train_step(model.to(settings.device), clouds, labels) for name, model in models.items()}
    result = race(steps, rounds, name=situation.name, watch=settings.watch)
    return [
        {
            "situation": situation.name,
            "model": name,
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "rounds": rounds,
            "seconds": result.times(name).as_dict(),
            "ratio": result.ratio(name).as_dict(),
            "to_rope_mixed": result.ratio(name, to="rope_mixed").as_dict(),
        }
        for name, model in models.items()
    ]


def _weigh(loads: list[RotationLoad], settings: Settings) -> list[dict[str, Any]]:
    rows = []
    for done, load in enumerate(loads):
        settings.watch("memory of many tokens", done, len(loads))
        found = run_probe(load)
        used = found["peak"] - found["before"]
        rows.append(
            {
                "situation": f"{load.tokens:,} tokens in 3-D, {load.heads} heads of {load.head_dim}",
                "model": load.encoding,
                "rounds": 1,
                "tensor_bytes": found["tensors"],
                "used_bytes": used,
                "memory": spread([used / found["tensors"]]).as_dict(),
            }
        )
    settings.watch("memory of many tokens", len(loads), len(loads))
    return rows
