"""The data loaders for training and validation."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader

from liere.data.batches import EvaluationBatches, ExampleOrder, TrainingBatches
from liere.data.examples import Batch
from liere.data.loader import make_loader
from liere.optional.lightning_import import import_lightning
from liere.runs.data_of_run import load_data
from liere.runs.run import Run
from liere.training.classifier import Classifier

pl = import_lightning()

__all__ = ["TrainingData"]


class TrainingData(pl.LightningDataModule):  # type: ignore[misc, name-defined]
    """The data loaders of a run; a Lightning epoch consists of the steps up to the next validation."""

    def __init__(self, run: Run, classifier: Classifier) -> None:
        super().__init__()
        config = run.config
        self.config, self.classifier = config, classifier
        self.train_data = load_data(run, "train")
        self.val_data = load_data(run, "val", length=config.training.validation_examples)
        self.order = ExampleOrder(len(self.train_data), config.training.seed)

    def train_dataloader(self) -> DataLoader[Batch]:
        """Return the batches from the current step to the next validation."""
        training, step = self.config.training, self.classifier.step
        stop = min((step // training.validate_every + 1) * training.validate_every, training.steps)
        batches = TrainingBatches(
            self.order,
            range(step, stop),
            training.batch_size,
            training.accumulate,
            self.trainer.global_rank,
            self.trainer.world_size,
        )
        return self._loader(self.train_data, batches)

    def val_dataloader(self) -> DataLoader[Batch]:
        """Return this process's part of the validation examples."""
        size = self.config.training.part_size
        batches = EvaluationBatches(len(self.val_data), size, self.trainer.global_rank, self.trainer.world_size)
        return self._loader(self.val_data, batches)

    def _loader(self, data: Any, batches: Any) -> DataLoader[Batch]:
        on_gpu = self.trainer.strategy.root_device.type == "cuda"
        return make_loader(data, batches, workers=self.config.hardware.workers, pin_memory=on_gpu)
