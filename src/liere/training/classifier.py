"""The Lightning module: a model, its loss and its optimizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from liere.data.batches import seed_of
from liere.data.examples import Batch
from liere.data.facts import DataFacts
from liere.optional.lightning_import import import_lightning
from liere.runs.config import RunConfig
from liere.runs.image_classifier import ImageClassifier
from liere.training.optimizer import learning_rate_factor, make_optimizer
from liere.training.sharded_model import is_sharded, shard
from liere.vit import VisionTransformer

pl = import_lightning()

__all__ = ["Classifier", "Score"]


@dataclass(frozen=True)
class Score:
    """Accuracy and loss over some examples."""

    accuracy: float
    loss: float


class Classifier(pl.LightningModule):  # type: ignore[misc, name-defined]
    """A model with its loss and optimizer.

    Dropout is seeded by the seed and the step, so that no generator state has to be saved for resuming.

    Args:
        model: Model that maps normalized images to logits.
        config: Configuration of the run.
        facts: Facts of its data.
        first_step: Steps completed before, if resumed.
    """

    def __init__(self, model: VisionTransformer, config: RunConfig, facts: DataFacts, *, first_step: int = 0) -> None:
        super().__init__()
        self.config = config
        self.first_step = first_step
        self.validation: Score | None = None
        self._sums = torch.zeros(3)
        self.images = ImageClassifier(model, facts)

    @property
    def step(self) -> int:
        """Completed steps, in this process and before."""
        return self.first_step + self.trainer.global_step

    def setup(self, stage: str) -> None:
        """Set the number of threads after Lightning has changed it for several processes."""
        if self.config.hardware.threads is not None:
            torch.set_num_threads(self.config.hardware.threads)

    def configure_model(self) -> None:
        """Shard the parameters over the processes, if asked for."""
        if self.config.hardware.is_sharded and not is_sharded(self.model):
            shard(self.model, self.device_mesh["data_parallel"])

    def configure_optimizers(self) -> dict[str, Any]:
        """Return the optimizer and the schedule, starting at the first step."""
        optimizer = make_optimizer(self.model, self.config.optimizer)

        def factor(step: int) -> float:
            return learning_rate_factor(
                self.first_step + step,
                total_steps=self.config.training.steps,
                warmup_steps=self.config.optimizer.warmup_steps,
            )

        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    @property
    def model(self) -> VisionTransformer:
        """The model that maps normalized images to logits."""
        return self.images.model

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of raw images of the data set."""
        return self.images(images)

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        """Seed dropout for this part of this step."""
        part = batch_idx % self.config.training.accumulate
        torch.manual_seed(seed_of(self.config.training.seed, self.step, part, self.global_rank))

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Return the loss."""
        return F.cross_entropy(self(batch.images), batch.labels)

    def on_validation_epoch_start(self) -> None:
        """Reset the counts."""
        self._sums = torch.zeros(3, device=self.device)

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Add the examples, correct answers and losses of a batch, unless it only keeps step with other processes."""
        _, losses, right = self.images.classify(batch)
        if self.trainer.val_dataloaders.sampler.is_extra(batch_idx):
            return
        self._sums += torch.stack([torch.ones_like(losses), right, losses]).sum(1)

    def on_validation_epoch_end(self) -> None:
        """Sum over processes, each of which saw different examples."""
        examples, right, loss = self.trainer.strategy.reduce(self._sums, reduce_op="sum").tolist()
        self.validation = Score(right / examples, loss / examples)
