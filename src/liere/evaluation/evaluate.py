"""Evaluation of a run: every test example once, at any resolution, with any positions, shuffled or not."""

from __future__ import annotations

import json
import math
import signal
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from liere.data.batches import EvaluationBatches
from liere.data.examples import Batch, ExampleSet
from liere.data.loader import lost_workers, make_loader
from liere.errors import InputError
from liere.evaluation.intervals import accuracy_interval, mean_interval
from liere.evaluation.predictions import Predictions
from liere.evaluation.shuffled_data import ShuffledData
from liere.files.writing import write_atomically
from liere.layers import grid_shape
from liere.machine import memory_bytes
from liere.optional.lightning_import import import_lightning
from liere.positions import Policy
from liere.presets import image_and_patch
from liere.runs.conditions import Condition
from liere.runs.data_of_run import load_data
from liere.runs.image_classifier import ImageClassifier
from liere.runs.locking import confirm_lock
from liere.runs.model import load_model
from liere.runs.other_processes import ending_with_new_processes, name_lost_processes, shield_new_processes
from liere.runs.records import merge_evaluations
from liere.runs.run import Run
from liere.runs.trainer import make_trainer
from liere.vit import AttentionScale, VisionTransformer
from liere_command.processes import end_with_first_process
from liere_command.signals import release_signals

pl = import_lightning()

__all__ = ["evaluate"]

AGAIN = "evaluate again"
LOCK_PATIENCE = 60.0  # seconds; other processes hold it only briefly


def evaluate(
    run: Run,
    conditions: Sequence[Condition | int],
    *,
    examples: int | None = None,
    batch_size: int | None = None,
    best: bool = False,
    say: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Predict the test split under each condition, write predictions and `evaluation.json`, and return its records.

    Args:
        run: A finished run.
        conditions: Image sizes and other differences from training.
        examples: Number of test examples; None for all.
        batch_size: Examples per batch; None for 100 images or clips. Several processes share whole batches, so results
            do not depend on their number.
        best: Whether to use the weights with the best validation accuracy instead of the final ones.
        say: Function called with a line per condition.

    Raises:
        ValueError: If the run is not finished, or a size is not available.
    """
    release_signals(run.config.hardware.world_size)
    end_with_first_process()
    result = run.result()
    run.evaluations()  # if they are damaged, the new ones could not be added to them
    wanted = [Condition(one) if isinstance(one, int) else one for one in conditions]
    data = {condition: _load(run, condition, examples) for condition in wanted}
    batch_size = max(100 // run.data.test_views, 1) if batch_size is None else batch_size
    _check_sizes(run, data, batch_size)
    weights = run.best_weights if best else run.final_weights
    model = load_model(run.config, weights, run.facts)
    as_trained = model.position_policy, model.attention_scale
    offsets = _offsets(model, wanted, run.config.model.encoding)
    predictor = _Predictor(ImageClassifier(model, run.facts), run.config.hardware.threads)
    gather = _Gather()
    trainer = make_trainer(run.config, callbacks=[gather])
    shield_new_processes(trainer)
    records = []
    with ending_with_new_processes(trainer, run, AGAIN):
        for condition, split in data.items():
            policy, scale = as_trained
            model.position_policy = cast(Policy, condition.policy) if condition.policy else policy
            model.attention_scale = (
                cast(AttentionScale, condition.attention_scale) if condition.attention_scale else scale
            )
            model.placement = offsets[condition]
            with lost_workers(AGAIN), name_lost_processes(run, AGAIN):
                _predict(trainer, predictor, _Data(split, batch_size, run.config.hardware.workers))
            if trainer.is_global_zero:
                record = _write(run, result, condition, split, gather.predictions(), examples, weights)
                records.append(record)
                say(f"{run.folder.name}: {_sentence(record)}")
    return records


def _check_sizes(run: Run, data: dict[Condition, ExampleSet], batch_size: int) -> None:
    """Raise `ValueError` if images cannot be divided into patches, or a batch of them does not fit in memory."""
    memory = memory_bytes()
    for condition, split in data.items():
        grid_shape(*image_and_patch(split.facts.image_size, run.config.model.patch_size))
        count = min(batch_size, len(split))
        values = count * run.data.test_views * split.facts.channels * math.prod(split.facts.image_size)
        least = torch.float32.itemsize * values
        if memory is not None and least > memory:  # otherwise the system might end the process
            raise InputError(
                f"{count} images of size {condition.size} need at least {least / 1e9:,.0f} GB, but the machine has "
                f"{memory / 1e9:,.0f} GB of memory: reduce sizes or batch_size"
            )


def _offsets(
    model: VisionTransformer, wanted: Sequence[Condition], encoding: str
) -> dict[Condition, tuple[float, ...] | None]:
    """Return the offset of the grid for each condition, in token steps."""
    if any(condition.placement for condition in wanted) and not model.encoding.has_coordinates:
        raise InputError(f"placements move coordinates, but the encoding {encoding} has none: remove them")
    return {one: one.offsets(len(model.grid)) if one.placement else None for one in wanted}


def _write(
    run: Run,
    result: dict[str, Any],
    condition: Condition,
    split: ExampleSet,
    predictions: Predictions,
    asked: int | None,
    weights: Path,
) -> dict[str, Any]:
    """Write predictions and their scores to the run, unless its result has changed, and return their record."""
    skipped = len(split) - len(predictions.ids)
    if skipped and not split.can_skip:
        raise InputError(f"{skipped} of {len(split)} test examples were not predicted: evaluate again")
    if not all(map(math.isfinite, predictions.losses)):
        raise InputError(
            f"{weights} gives losses that are not finite, so it is damaged or training diverged: train the run again"
        )
    file = run.folder / "predictions" / f"{weights.stem}-test-{condition.name}.csv"
    record = condition.as_dict() | {
        "examples": len(predictions.ids),
        "asked": asked,
        **({"skipped": skipped} if skipped else {}),
        "weights": weights.stem,
        "accuracy": accuracy_interval(predictions.correct).as_dict(),
        "loss": mean_interval(predictions.losses).as_dict(),
        "predictions": file.relative_to(run.folder).as_posix(),
    }
    with run.lock(LOCK_PATIENCE):  # another process may be evaluating the same run
        if not run.result_file.exists() or run.result() != result:
            raise InputError(
                f"{run.folder} was trained longer while it was being evaluated, so these predictions are not those of "
                "its new weights, and are not saved: evaluate again once it has finished"
            )
        run.remove_unfinished()
        merged = merge_evaluations(run.evaluations(), [record])
        predictions.write(file)
        confirm = partial(confirm_lock, run.folder)
        write_atomically(run.evaluation_file, json.dumps(merged, indent=1) + "\n", confirm)
    return record


def _predict(trainer: Any, predictor: _Predictor, data: _Data) -> None:
    """Predict all examples, with Ctrl-C raised as `KeyboardInterrupt`.

    Lightning would exit silently and ignore further interrupts.
    """
    handler = signal.getsignal(signal.SIGINT)
    try:
        trainer.predict(predictor, datamodule=data, return_predictions=False)
    except SystemExit:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)
        raise KeyboardInterrupt from None


def _load(run: Run, condition: Condition, examples: int | None) -> ExampleSet:
    data = load_data(run, "test", size=condition.size, length=examples)
    if not condition.shuffle:
        return data
    _, patch = image_and_patch(data.facts.image_size, run.config.model.patch_size)
    return ShuffledData(data, patch, condition.shuffle)


class _Predictor(pl.LightningModule):  # type: ignore[misc, name-defined]
    """Lightning module that predicts each example."""

    def __init__(self, images: ImageClassifier, threads: int | None) -> None:
        super().__init__()
        self.images, self.threads = images, threads

    def setup(self, stage: str) -> None:
        """Set the number of threads after Lightning has changed it for several processes."""
        if self.threads is not None:
            torch.set_num_threads(self.threads)

    def predict_step(self, batch: Batch, batch_idx: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return ids, labels, predictions and losses."""
        predictions, losses, _ = self.images.classify(batch)
        return batch.ids, batch.labels, predictions, losses


class _Data(pl.LightningDataModule):  # type: ignore[misc, name-defined]
    def __init__(self, data: ExampleSet, batch_size: int, workers: int) -> None:
        super().__init__()
        self.data, self.batch_size, self.workers = data, batch_size, workers

    def predict_dataloader(self) -> Any:
        """Return this process's batches."""
        batches = EvaluationBatches(len(self.data), self.batch_size, self.trainer.global_rank, self.trainer.world_size)
        return make_loader(self.data, batches, workers=self.workers)


class _Gather(pl.Callback):  # type: ignore[misc, name-defined]
    """Collect the predictions of all processes."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.all_parts: list[list[Any]] = []

    def on_predict_start(self, trainer: Any, predictor: _Predictor) -> None:
        """Reset the predictions."""
        self.parts = []

    def on_predict_batch_end(self, trainer: Any, predictor: _Predictor, outputs: Any, *_: Any) -> None:
        """Store the predictions of a batch."""
        self.parts.append([column.tolist() for column in outputs])

    def on_predict_end(self, trainer: Any, predictor: _Predictor) -> None:
        """Share the predictions among all processes."""
        self.all_parts = [self.parts]
        if trainer.world_size > 1:
            self.all_parts = [[] for _ in range(trainer.world_size)]
            torch.distributed.all_gather_object(self.all_parts, self.parts)

    def predictions(self) -> Predictions:
        """Return the predictions in the order of ids."""
        records = [record for parts in self.all_parts for part in parts for record in zip(*part, strict=True)]
        # An example occurs twice if it replaces an unreadable file, or is in the extra batch of a process.
        by_id = {record[0]: record for record in records}
        return Predictions(*map(list, zip(*(by_id[number] for number in sorted(by_id)), strict=True)))


def _sentence(record: dict[str, Any]) -> str:
    accuracy, loss = record["accuracy"], record["loss"]
    percent = [f"{100 * accuracy[key]:.1f}" for key in ("value", "low", "high")]
    skipped = f", {record['skipped']} unreadable" if "skipped" in record else ""
    return (
        f"{Condition.of(record).describe()}: accuracy {percent[0]} % ({percent[1]}-{percent[2]}), "
        f"loss {loss['value']:.3f} ({loss['low']:.3f}-{loss['high']:.3f}), {record['examples']:,} examples{skipped}"
    )
