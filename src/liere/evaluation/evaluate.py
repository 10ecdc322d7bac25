"""Evaluate a run: every test example once, at any resolution."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import torch

from liere.evaluation.predictions import Predictions
from liere.evaluation.statistics import accuracy_interval, mean_interval
from liere.files import write_atomically
from liere.training.classifier import Classifier
from liere.training.lightning_import import import_lightning
from liere.training.model import load_model
from liere.training.runs import Run
from liere.training.stream import EvaluationBatches, make_loader
from liere.training.trainer import make_trainer

pl = import_lightning()

__all__ = ["evaluate"]


def evaluate(
    run: Run,
    sizes: Sequence[int],
    *,
    examples: int | None = None,
    batch_size: int = 100,
    best: bool = False,
    say: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Predict the test split at each size, write predictions and `evaluation.json`, and return what is in it.

    Args:
        run: A finished run.
        sizes: Image sizes.
        examples: How many test examples; None for all.
        batch_size: Examples at a time. With several processes each takes whole batches, so results stay the same.
        best: Whether to take the weights with the best validation accuracy instead of the final ones.
        say: Receives a line for each size.

    Raises:
        ValueError: If the run is not finished, or a size does not fit.
    """
    run.result()
    config = run.config
    data = {size: config.data.load("test", size=size, length=examples) for size in sizes}
    weights = run.best_weights if best else run.final_weights
    classifier = Classifier(load_model(config, weights), config)
    gather = _Gather()
    trainer = make_trainer(config, callbacks=[gather])
    world = config.hardware.devices * config.hardware.nodes
    for split in data.values():
        if -(-len(split) // batch_size) < world:
            raise ValueError(
                f"{len(split)} examples in batches of {batch_size} are too few for {world} processes: "
                "use fewer devices or smaller batches"
            )
    records = []
    for size, split in data.items():
        trainer.predict(classifier, datamodule=_Data(split, batch_size), return_predictions=False)
        if trainer.is_global_zero:
            predictions = gather.predictions()
            file = run.folder / "predictions" / f"{weights.stem}-test-{size}.csv"
            predictions.write(file)
            record = {
                "size": size,
                "examples": len(predictions.ids),
                "weights": weights.stem,
                "accuracy": accuracy_interval(predictions.correct).as_dict(),
                "loss": mean_interval(predictions.losses).as_dict(),
                "predictions": str(file.relative_to(run.folder)),
            }
            records.append(record)
            write_atomically(run.evaluation_file, json.dumps(_merged(run.evaluations(), [record]), indent=1) + "\n")
            say(f"{run.folder.name}: {_sentence(record)}")
    return records


class _Data(pl.LightningDataModule):  # type: ignore[misc, name-defined]
    def __init__(self, data: Any, batch_size: int) -> None:
        super().__init__()
        self.data, self.batch_size = data, batch_size

    def predict_dataloader(self) -> Any:
        """Return this process's batches."""
        batches = EvaluationBatches(len(self.data), self.batch_size, self.trainer.global_rank, self.trainer.world_size)
        return make_loader(self.data, batches)


class _Gather(pl.Callback):  # type: ignore[misc, name-defined]
    """Collect what all processes predict."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.all_parts: list[list[Any]] = []

    def on_predict_start(self, trainer: Any, classifier: Classifier) -> None:
        """Begin anew."""
        self.parts = []

    def on_predict_batch_end(self, trainer: Any, classifier: Classifier, outputs: Any, *_: Any) -> None:
        """Keep a batch."""
        self.parts.append([column.tolist() for column in outputs])

    def on_predict_end(self, trainer: Any, classifier: Classifier) -> None:
        """Send everything to everyone."""
        self.all_parts = [self.parts]
        if trainer.world_size > 1:
            self.all_parts = [[] for _ in range(trainer.world_size)]
            torch.distributed.all_gather_object(self.all_parts, self.parts)

    def predictions(self) -> Predictions:
        """Return the predictions in the order of ids."""
        records = [record for parts in self.all_parts for part in parts for record in zip(*part, strict=True)]
        return Predictions(*map(list, zip(*sorted(records), strict=True)))


def _merged(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = {(record["weights"], record["size"]): record for record in [*old, *new]}
    return [found[key] for key in sorted(found)]


def _sentence(record: dict[str, Any]) -> str:
    accuracy, loss = record["accuracy"], record["loss"]
    percent = [f"{100 * accuracy[key]:.1f}" for key in ("value", "low", "high")]
    return (
        f"{record['size']} px: accuracy {percent[0]} % ({percent[1]}-{percent[2]}), "
        f"loss {loss['value']:.3f} ({loss['low']:.3f}-{loss['high']:.3f}), {record['examples']:,} examples"
    )
