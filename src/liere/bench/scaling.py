"""How does the cost of LieRE grow? Train steps with LieRE and absolute positions, varying one quantity at a time."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import torch

from liere.bench.models import random_batch, train_step
from liere.bench.race import race
from liere.bench.record import Answer, Settings
from liere.presets import create_model
from liere.vit import VisionTransformer

__all__ = ["QUICK_VARIATIONS", "VARIATIONS", "Setup", "measure"]

NUM_CLASSES = 100
PATCH = 4
DEPTH = 2


@dataclass(frozen=True)
class Setup:
    """A train step.

    Attributes:
        grid: Tokens on each axis.
        block_size: Block size of LieRE.
        batch_size: Inputs per step.
    """

    grid: tuple[int, ...] = (14, 14)
    block_size: int = 8
    batch_size: int = 8

    @property
    def tokens(self) -> int:
        """Number of tokens in the grid."""
        return math.prod(self.grid)


BASE = Setup()
VARIATIONS: dict[str, list[Setup]] = {
    "tokens": [dataclasses.replace(BASE, grid=(n, n)) for n in (4, 8, 14, 20, 28)],
    "block size": [dataclasses.replace(BASE, block_size=b) for b in (2, 4, 8, 16, 32, 64)],
    "axes": [dataclasses.replace(BASE, grid=grid) for grid in ((196,), (14, 14), (4, 7, 7))],
    "batch size": [dataclasses.replace(BASE, batch_size=n) for n in (1, 4, 16, 64)],
}
QUICK_BASE = Setup((8, 8), batch_size=4)
QUICK_VARIATIONS: dict[str, list[Setup]] = {
    "tokens": [dataclasses.replace(QUICK_BASE, grid=(n, n)) for n in (4, 8, 14)],
    "block size": [dataclasses.replace(QUICK_BASE, block_size=b) for b in (2, 8, 64)],
    "axes": [dataclasses.replace(QUICK_BASE, grid=grid) for grid in ((64,), (8, 8), (4, 4, 4))],
    "batch size": [dataclasses.replace(QUICK_BASE, batch_size=n) for n in (1, 4, 16)],
}


def measure(settings: Settings) -> Answer:
    """Time a train step with and without LieRE in every setup. A setup that occurs repeatedly is timed once."""
    rounds = settings.choose_rounds(full=7, quick=3)
    known: dict[Setup, dict[str, Any]] = {}
    rows = []
    for varied, setups in (QUICK_VARIATIONS if settings.quick else VARIATIONS).items():
        for setup in setups:
            if setup not in known:
                known[setup] = _measure_setup(setup, rounds, settings)
            rows.append({"varied": varied, "value": _value(varied, setup), **known[setup]})
    return Answer(rounds, rows)


def _value(varied: str, setup: Setup) -> int:
    return {
        "tokens": setup.tokens,
        "block size": setup.block_size,
        "axes": len(setup.grid),
        "batch size": setup.batch_size,
    }[varied]


def _measure_setup(setup: Setup, rounds: int, settings: Settings) -> dict[str, Any]:
    torch.manual_seed(0)
    image_size = tuple(PATCH * n for n in setup.grid)
    images, labels = random_batch(setup.batch_size, image_size, num_classes=NUM_CLASSES, device=settings.device)
    own = f"liere{setup.block_size}"
    steps = {
        encoding: train_step(_model(encoding, image_size).to(settings.device), images, labels)
        for encoding in ("absolute", own)
    }
    grid = "x".join(map(str, setup.grid))
    name = f"{grid} tokens, block size {setup.block_size}, batch {setup.batch_size}"
    result = race(steps, rounds, name=name, watch=settings.watch)
    return {
        **dataclasses.asdict(setup),
        "rounds": rounds,
        "absolute_seconds": result.times("absolute").as_dict(),
        "liere_seconds": result.times(own).as_dict(),
        "ratio": result.ratio(own).as_dict(),
        "excess_seconds": result.excess(own).as_dict(),
    }


def _model(encoding: str, image_size: tuple[int, ...]) -> VisionTransformer:
    return create_model(
        "vit_small", encoding=encoding, image_size=image_size, patch_size=PATCH, num_classes=NUM_CLASSES, depth=DEPTH
    )
