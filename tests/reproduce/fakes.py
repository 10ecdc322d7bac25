"""Finished runs without training: a configuration, a result and predictions of our choice."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from liere.comparison.planned_run import PlannedRun
from liere.evaluation.predictions import Predictions
from liere.runs.conditions import Condition
from liere.runs.run import Run, create_run

__all__ = ["CLASSES", "finish", "predictions"]

CLASSES = 10


def predictions(accuracy: float, count: int = 400, seed: int = 0) -> Predictions:
    """Answers of which exactly this share is right; which ones depends on the seed."""
    right = np.zeros(count, dtype=bool)
    right[: round(accuracy * count)] = True
    np.random.default_rng(seed).shuffle(right)
    labels = np.arange(count) % CLASSES
    answers = np.where(right, labels, (labels + 1) % CLASSES)
    losses = np.where(right, 0.5, 2.0) + 0.1 * np.random.default_rng(seed + 1).random(count)
    return Predictions(list(range(count)), labels.tolist(), answers.tolist(), losses.tolist())


def finish(
    planned: PlannedRun,
    folder: Path,
    found: dict[Condition, Predictions],
    *,
    seconds: float = 10.0,
    weights: bool = False,
) -> Run:
    """Make a planned run look finished, tested under these conditions."""
    run = create_run(folder, planned.config)
    result = {
        "step": planned.config.training.steps,
        "examples": planned.config.training.examples,
        "seconds": seconds,
        "parameters": 1000,
        "encoding_parameters": 100,
        "best": {"step": 1, "accuracy": 0.5, "loss": 1.0},
        "fingerprint": planned.config.fingerprint,
        "date": "2026-01-01T00:00:00+00:00",
        "machine": {},
        "versions": {},
    }
    run.result_file.write_text(json.dumps(result))
    rows = "step,examples,seconds,learning_rate,train_loss,val_loss,val_accuracy\n"
    for step in (1, 2, 3, 4):
        rows += f"{step},{100 * step},{step},,,1.0,{0.2 * step}\n"
    run.metrics.write_text(rows)
    records = []
    for condition, answers in found.items():
        file = folder / "predictions" / f"final-test-{condition.name}.csv"
        answers.write(file)
        records.append(
            condition.as_dict()
            | {"examples": len(answers.ids), "asked": planned.examples, "weights": "final"}
            | {"predictions": str(file.relative_to(folder)), "accuracy": {"value": float(answers.correct.mean())}}
        )
    run.evaluation_file.write_text(json.dumps(records))
    if weights:
        run.final_weights.write_bytes(b"")
    return run
