"""How much memory does a train step need? Peak memory of a fresh process for each model."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import torch

from liere.bench.memory_probe import Load, RotationLoad
from liere.bench.race import spread
from liere.bench.record import Answer, Settings

__all__ = ["QUICK_SITUATIONS", "SITUATIONS", "Situation", "measure", "run_probe"]

RECOMPUTE = " recompute"


@dataclass(frozen=True)
class Situation:
    """Models that are compared on the same input.

    Attributes:
        name: Name of the situation in tables.
        batch_size: Inputs per step.
        encodings: Encodings to measure; the first is the baseline, and the suffix " recompute" sets `recompute=True`.
        model: Other arguments of `create_model`.
    """

    name: str
    batch_size: int
    encodings: tuple[str, ...]
    model: dict[str, Any] = field(default_factory=dict)


IMAGES = {"size": "vit_small", "image_size": 32, "patch_size": 4, "num_classes": 100}
VOLUMES = {
    "size": "vit_base",
    "image_size": (16, 112, 112),
    "patch_size": (4, 8, 8),
    "num_classes": 100,
    "in_channels": 1,
}
SITUATIONS = [
    Situation(
        "ViT-S, 32 px, patch 4, batch 64",
        64,
        ("absolute", "rope_mixed", "liere8", "liere64", "liere64 recompute"),
        IMAGES,
    ),
    Situation(
        "ViT-B, 785 tokens of a volume, batch 1", 1, ("absolute", "liere8", "liere64", "liere64 recompute"), VOLUMES
    ),
]
QUICK_SITUATIONS = [
    Situation(
        "ViT-S of 2 layers, 32 px, patch 4, batch 8",
        8,
        ("absolute", "liere64", "liere64 recompute"),
        IMAGES | {"depth": 2},
    )
]


def measure(settings: Settings) -> Answer:
    """Measure the peak memory of every model, in a fresh process each time."""
    rounds = settings.choose_rounds(full=1, quick=1)
    rows: list[dict[str, Any]] = []
    for situation in QUICK_SITUATIONS if settings.quick else SITUATIONS:
        peaks: dict[str, list[dict[str, int]]] = {encoding: [] for encoding in situation.encodings}
        for done in range(rounds):
            settings.watch(situation.name, done, rounds)
            for encoding, found in peaks.items():
                found.append(run_probe(_load(encoding, situation)))
        settings.watch(situation.name, rounds, rounds)
        rows += _rows(situation, peaks, rounds)
    return Answer(rounds, rows)


def _load(encoding: str, situation: Situation) -> Load:
    model = situation.model | {"encoding": encoding.removesuffix(RECOMPUTE)}
    if encoding.endswith(RECOMPUTE):
        model["recompute"] = True
    return Load(situation.batch_size, model, torch.get_num_threads())


def run_probe(load: Load | RotationLoad) -> dict[str, int]:
    """Return what a process of its own finds."""
    command = [sys.executable, "-m", "liere.bench.memory_probe", json.dumps(dataclasses.asdict(load)), str(os.getpid())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        # A process killed by the system, most likely because it ran out of memory, prints nothing.
        reason = (done.stderr.strip().splitlines() or ["killed by the system, possibly out of memory"])[-1]
        raise OSError(f"cannot measure the memory of {load} (exit code {done.returncode}): {reason}")
    return json.loads(done.stdout)


def _rows(situation: Situation, peaks: dict[str, list[dict[str, int]]], rounds: int) -> list[dict[str, Any]]:
    base = [found["peak"] for found in peaks[situation.encodings[0]]]
    return [
        {
            "situation": situation.name,
            "batch_size": situation.batch_size,
            "model": encoding,
            "arguments": situation.model,
            "rounds": rounds,
            "before_bytes": spread([found["before"] for found in own]).as_dict(),
            "peak_bytes": spread([found["peak"] for found in own]).as_dict(),
            "step_bytes": spread([found["peak"] - found["before"] for found in own]).as_dict(),
            "ratio": spread([found["peak"] / least for found, least in zip(own, base, strict=True)]).as_dict(),
        }
        for encoding, own in peaks.items()
    ]
