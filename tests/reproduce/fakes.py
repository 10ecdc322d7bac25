"""Fake finished runs: a configuration, a result and chosen predictions, without training."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

pytest.importorskip("tests.training.requirements")

import numpy as np

from liere.comparison.planned_run import PlannedRun
from liere.evaluation.predictions import Predictions
from liere.report.table_cells import Table
from liere.reproduce.catalog import CATALOGUE
from liere.reproduce.outcome import Outcome
from liere.reproduce.reproduction import committed_runs, prepare
from liere.reproduce.results import Results
from liere.reproduce.wanted_runs import Key
from liere.runs.conditions import Condition
from liere.runs.run import Run, create_run

__all__ = [
    "ACCURACY",
    "CLASSES",
    "claims_of",
    "committed_outcome",
    "fake_all",
    "fake_results",
    "finish",
    "predictions",
    "texts_of",
]

CLASSES = 10
ACCURACY = {
    "absolute:init_std=1": 0.5,
    "absolute": 0.55,
    "visionllama": 0.6,
    "rope_mixed": 0.7,
    "liere8": 0.8,
    "liere": 0.75,
}
# Deviations of the three seeds from an encoding's accuracy: different for each encoding, and 0 on average.
DEVIATIONS = list(itertools.permutations((-1, 0, 1)))


def predictions(accuracy: float, count: int = 400, seed: int = 0, *, noise: float = 0.1) -> Predictions:
    """Return predictions of which exactly this fraction is correct; the seed determines which ones.

    For one seed, the correct examples of a lower accuracy are a subset of those of a higher one.
    """
    right = np.zeros(count, dtype=bool)
    right[: round(accuracy * count)] = True
    np.random.default_rng(seed).shuffle(right)
    labels = np.arange(count) % CLASSES
    answers = np.where(right, labels, (labels + 1) % CLASSES)
    losses = np.where(right, 0.5, 2.0) + noise * np.random.default_rng(seed + 1).random(count)
    return Predictions(list(range(count)), labels.tolist(), answers.tolist(), losses.tolist())


def finish(
    planned: PlannedRun,
    folder: Path,
    found: dict[Condition, Predictions],
    *,
    seconds: float = 10.0,
    weights: bool = False,
    curve: Sequence[float] = (0.2, 0.4, 0.6, 0.8),
    encoding_parameters: int = 100,
) -> Run:
    """Make a planned run look finished and tested under these conditions, with validation every 100 examples."""
    run = create_run(folder, planned.config)
    result = {
        "step": planned.config.training.steps,
        "examples": planned.config.training.examples,
        "seconds": seconds,
        "parameters": 1000,
        "encoding_parameters": encoding_parameters,
        "best": {"step": 1, "accuracy": 0.5, "loss": 1.0},
        "fingerprint": planned.config.fingerprint,
        "date": "2026-01-01T00:00:00+00:00",
        "machine": {},
        "versions": {},
    }
    run.result_file.write_text(json.dumps(result))
    rows = "step,examples,seconds,learning_rate,train_loss,val_loss,val_accuracy\n"
    for step, accuracy in enumerate(curve, start=1):
        rows += f"{step},{100 * step},{step},,,1.0,{accuracy}\n"
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


def fake_results(
    name: str,
    folder: Path,
    accuracy: Callable[[Key, Condition, int], float],
    *,
    scale: str = "small",
    only: Sequence[str] = (),
    seeds: Sequence[int] = (),
    encodings: Sequence[str] = (),
    details: Callable[[Key, int], dict] = lambda key, seed: {},
) -> Results:
    """Return the results of a table whose runs have exactly these accuracies, on 400 test examples by default.

    Args:
        name: The table.
        folder: Where to write the runs.
        accuracy: Returns the accuracy of a run, given its role in the table, the test condition and its seed.
        scale: Scale of the experiment.
        only: Data sets to include; empty for all.
        seeds: Seeds to use instead of those of the experiment.
        encodings: Encodings to use instead of those of the experiment.
        details: Returns further arguments of `finish`, given a run's role in the table and its seed.
    """
    chosen = {"only": only, "seeds": seeds, "encodings": encodings}
    reproduction = prepare(CATALOGUE[name], scale, {}, places=[folder], **chosen)
    for one in reproduction.wanted:
        planned = one.planned
        if not planned.folder.exists():
            found = {
                condition: predictions(accuracy(one.key, condition, one.seed), planned.examples or 400, noise=0)
                for condition in planned.conditions
            }
            finish(planned, planned.folder, found, **details(one.key, one.seed))
    return reproduction.results()


def fake_all(
    name: str,
    out: Path,
    *,
    scale: str = "small",
    only=("CIFAR-10",),
    accuracy=ACCURACY,
    seeds=(),
    encodings=(),
    **options,
) -> None:
    """Make every run of a table look finished with given accuracies, reduced by variations and conditions."""
    entry = CATALOGUE[name]
    reproduction = prepare(entry, scale, {}, places=[out / "runs"], only=only, seeds=seeds, encodings=encodings)
    for place, one in enumerate(reproduction.wanted):
        planned = one.planned
        if planned.folder.exists():
            continue
        found = {}
        for number, condition in enumerate(planned.conditions):
            base = accuracy.get(one.key.encoding, 0.65) - 0.05 * list(reproduction.experiment.vary).index(
                one.key.variant
            )
            base -= 0.3 * bool(condition.shuffle) + 0.02 * number
            row = list(accuracy).index(one.key.encoding) if one.key.encoding in accuracy else 0
            base += 0.003 * DEVIATIONS[row][one.seed % 3]
            found[condition] = predictions(base, planned.examples or 400, seed=1000 * place + one.seed)
        finish(planned, planned.folder, found, **options)


def committed_outcome(name: str) -> tuple[Results, Outcome]:
    """Return a table built from the committed runs; skip the test if they are missing."""
    place = committed_runs("small")
    if place is None:
        pytest.skip("the committed runs are not available")
    results = prepare(CATALOGUE[name], "small", {}, places=[place]).results()
    return results, CATALOGUE[name].build(results)


def texts_of(table: Table) -> dict[str, list[str]]:
    """Return the cells of a table as text, by the first cell of their row."""
    return {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}


def claims_of(outcome: Outcome) -> dict[str, tuple[str, str]]:
    """Return verdicts and evidence by claim."""
    return {claim.text: (claim.verdict, claim.evidence) for claim in outcome.claims}
