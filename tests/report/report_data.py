"""A comparison with made-up numbers, in the format of `liere compare`."""

from __future__ import annotations

import io
import math
import random
from typing import Any

from liere.report.picture_data import AttentionRow, Pictures, Sample

SIZES = [108, 168, 276]
# Accuracy at each size, of the first seed; examples until it "clicks".
ENCODINGS: dict[str, tuple[list[float], int | None]] = {
    "absolute": ([0.453, 0.422, 0.381], None),
    "visionllama": ([0.441, 0.425, 0.388], None),
    "rope_mixed": ([0.9995, 0.901, 0.309], 61_440),
    "liere8": ([1.0, 0.912, 0.651], 56_320),
    "liere": ([0.9996, 0.999, 0.916], 51_200),
}
PAPER = {
    "absolute": [45.1, 41.0, 40.1],
    "visionllama": [46.4, 48.6, 48.6],
    "rope_mixed": [100.0, 98.6, 88.6],
    "liere8": [99.5, 99.7, 99.7],
    "liere": [100.0, 100.0, 100.0],
}


def make_comparison(names: list[str] | None = None, seeds: int = 3, sizes: list[int] | None = None) -> dict[str, Any]:
    """Return a comparison of some of `ENCODINGS`."""
    names, sizes = list(ENCODINGS) if names is None else names, SIZES if sizes is None else sizes
    dice = random.Random(0)
    rows = [_row(name, seeds, sizes, dice) for name in names]
    return {
        "format": "liere-comparison-1",
        "title": "Spatial reasoning at small scale",
        "description": "Which arrow does the Y point to? Trained on small images, tested on larger ones.",
        "command": "liere compare --config configs/spatial_small.yaml --seeds 3 --output runs/spatial_small",
        "date": "2026-11-16T06:00:00+00:00",
        "sizes": sizes,
        "train_size": 108,
        "target_accuracy": 0.95,
        "config": {
            "model": {"dim": 64, "depth": 4, "heads": 2, "mlp_dim": 128, "patch_size": [12, 12]},
            "optimizer": {"name": "adam", "learning_rate": 0.002, "warmup_steps": 200, "clip": 1.0},
            "data": {"root": None, "cells": "9x9", "batch_size": 128},
        },
        "versions": {"python": "3.11.7", "liere": "0.1.0", "torch": "2.13.0", "lightning": "2.6.6"},
        "machine": {"cpu": "Some CPU @ 2.60GHz", "cores": 2, "memory_gb": 24.0, "system": "Linux-6.1-x86_64"},
        "encodings": rows,
        "paper_note": "ViT-B, 800,000 examples",
        "pairs": [
            _pair(size, first, second) for size in sizes for place, first in enumerate(rows) for second in rows[:place]
        ],
        "pairs_note": "Paired tests over seeds and over test examples.",
        "runs": [
            {
                "encoding": name,
                "seed": seed,
                "run": f"runs/{name}-seed{seed}",
                "seconds": 131.0 + seed,
                "curve": _curve(ENCODINGS[name], dice),
            }
            for name in names
            for seed in range(seeds)
        ],
    }


def make_pictures(encodings: list[str] | None = None, sizes: tuple[int, ...] = (108, 276)) -> Pictures:
    """Return random pictures."""
    dice = random.Random(0)
    rows = [
        AttentionRow(name, size, [_png(size // 12, dice, "jet") for _ in range(4)])
        for size in sizes
        for name in encodings or ENCODINGS
    ]
    return Pictures([Sample(f"answer: class {i}", _png(48, dice, "gray")) for i in range(6)], rows)


def _row(name: str, seeds: int, sizes: list[int], dice: random.Random) -> dict[str, Any]:
    accuracies, click = ENCODINGS[name]
    return {
        "encoding": name,
        "seeds": list(range(seeds)),
        "parameters": 151_234,
        "seconds": 132.4,
        "examples": 130_000,
        "examples_to_target": click,
        "seeds_at_target": seeds if click else 0,
        "evaluations": [_evaluation(size, accuracies[SIZES.index(size)], seeds, dice) for size in sizes],
        "paper": {str(size): PAPER[name][SIZES.index(size)] for size in sizes},
    }


def _evaluation(size: int, accuracy: float, seeds: int, dice: random.Random) -> dict[str, Any]:
    spread = 2 * math.sqrt(accuracy * (1 - accuracy) / 2000)
    by_seed = [accuracy + deviation for deviation in _deviations(seeds, spread, min(accuracy, 1 - accuracy), dice)]
    return {
        "size": size,
        "examples": 2000,
        "accuracy": {
            "value": accuracy,
            "low": accuracy - spread,
            "high": min(1.0, accuracy + spread),
            "method": "bootstrap",
        },
        "loss": {
            "value": 1.5 * (1 - accuracy),
            "low": 1.4 * (1 - accuracy),
            "high": 1.6 * (1 - accuracy),
            "method": "bootstrap",
        },
        "by_seed": by_seed,
    }


def _deviations(seeds: int, spread: float, room: float, dice: random.Random) -> list[float]:
    """Return numbers with mean 0 that keep accuracies between 0 and 1."""
    drawn = [dice.gauss(0, 2 * spread) for _ in range(seeds)]
    drawn = [one - sum(drawn) / seeds for one in drawn]
    largest = max((abs(one) for one in drawn), default=0.0)
    return [one * min(1.0, room / largest) if largest else 0.0 for one in drawn]


def _pair(size: int, first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    a, b = (
        next(found["accuracy"]["value"] for found in row["evaluations"] if found["size"] == size)
        for row in (first, second)
    )
    return {
        "size": size,
        "first": first["encoding"],
        "second": second["encoding"],
        "difference": a - b,
        "low": a - b - 0.02,
        "high": a - b + 0.02,
        "p": 1e-4 if abs(a - b) > 0.02 else 0.34,
    }


def _curve(encoding: tuple[list[float], int | None], dice: random.Random) -> list[dict[str, float]]:
    accuracies, click = encoding
    start = (click or 10**9) + dice.gauss(0, 4000)
    points = []
    for examples in range(5120, 130_001, 5120):
        plateau = 0.43 - 0.2 * math.exp(-examples / 8000)
        risen = 1 / (1 + math.exp(min(50.0, -(examples - start + 9000) / 2500)))
        accuracy = min(1.0, plateau + (accuracies[0] - plateau) * risen + dice.gauss(0, 0.006 * (1 - 0.95 * risen)))
        points.append({"examples": examples, "accuracy": accuracy, "loss": 1.5 * (1 - accuracy)})
    return points


def _png(side: int, dice: random.Random, colors: str) -> bytes:
    from matplotlib.image import imsave

    buffer = io.BytesIO()
    blobs = [(dice.random() * side, dice.random() * side, side * (0.05 + 0.2 * dice.random())) for _ in range(3)]
    values = [
        [sum(math.exp(-((x - a) ** 2 + (y - b) ** 2) / c**2) for a, b, c in blobs) for x in range(side)]
        for y in range(side)
    ]
    imsave(buffer, values, cmap=colors, format="png")
    return buffer.getvalue()
