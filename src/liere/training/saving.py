"""Checkpoints during training: every few steps, after validations, and when a stop is requested."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from liere.errors import InputError
from liere.optional.lightning_import import import_lightning
from liere.runs.checkpoints import Checkpoint, save_checkpoint, save_sharded_checkpoint
from liere.runs.locking import confirm_lock
from liere.runs.run import Run
from liere.runs.run_weights import save_weights
from liere.training.classifier import Classifier
from liere.training.sharded_model import is_sharded, shard_optimizer_state, whole_state_dict
from liere.training.stop_requests import StoppedError, StopRequest
from liere.training.training_log import Journal

pl = import_lightning()

__all__ = ["Saver"]


class Saver(pl.Callback):  # type: ignore[misc, name-defined]
    """Save the run every few steps, after validations, and when a stop is requested.

    Args:
        run: The run.
        journal: Log of the run, whose state is saved too; must precede this callback.
        checkpoint: Checkpoint to resume from; None at the start.
        request: Stop request, checked after every step.
        clock: Function that returns the training time in seconds.
    """

    def __init__(
        self,
        run: Run,
        journal: Journal,
        checkpoint: Checkpoint | None,
        request: StopRequest,
        clock: Callable[[], float],
    ) -> None:
        self.run, self.journal, self.checkpoint, self.request, self.clock = run, journal, checkpoint, request, clock

    def on_train_start(self, trainer: Any, classifier: Classifier) -> None:
        """Restore the optimizer state except learning rates, which the schedule sets; stop if requested."""
        if reason := self._common_reason(trainer):
            raise StoppedError(reason)
        self._check_first_step(trainer, classifier)
        if self.checkpoint is not None:
            (optimizer,) = trainer.optimizers
            groups = optimizer.state_dict()["param_groups"]
            state = shard_optimizer_state(optimizer, self.checkpoint.optimizer["state"])
            optimizer.load_state_dict({"state": state, "param_groups": groups})
            self.checkpoint = None  # frees the memory

    def on_train_batch_end(
        self, trainer: Any, classifier: Classifier, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Save if due; a step with a validation is saved after the validation."""
        training = self.run.config.training
        if (batch_idx + 1) % training.accumulate:
            return
        step = classifier.step
        if step % training.validate_every == 0 or step == training.steps:
            return
        reason = self._reason(trainer)
        if reason or step % training.checkpoint_every == 0:
            self._save(trainer, classifier)
        if reason:
            trainer.strategy.barrier()  # no process exits before the run is saved
            raise StoppedError(reason)

    def on_validation_end(self, trainer: Any, classifier: Classifier) -> None:
        """Save the run and the best weights; stop if requested or the target is reached."""
        score, target = classifier.validation, self.run.config.training.stop_at_accuracy
        assert score is not None
        if self.journal.best is not None and self.journal.best["step"] == classifier.step:
            weights = whole_state_dict(classifier.model)
            if trainer.is_global_zero:
                save_weights(weights, self.run.best_weights, self.run.facts, self._confirm)
        if target is not None and score.accuracy >= target:
            self.journal.reached_target = True
            trainer.should_stop = True
        self._save(trainer, classifier)
        reason = self._reason(trainer)
        if reason and not trainer.should_stop and classifier.step < self.run.config.training.steps:
            trainer.strategy.barrier()
            raise StoppedError(reason)

    def _reason(self, trainer: Any) -> str | None:
        """Return the reason to stop after this step, if any; other processes are not asked every step, to save time."""
        is_due = trainer.global_step % self.run.config.training.log_every == 0
        if trainer.world_size == 1 or is_due or trainer.global_step == self.request.further_steps:
            return self._common_reason(trainer)
        return None

    def _common_reason(self, trainer: Any) -> str | None:
        """Return the reason to stop, shared with its signal by all processes if one has it."""
        reason = self.request.reason(trainer.global_step)
        if trainer.world_size == 1:
            return reason
        device = trainer.strategy.root_device
        found = torch.tensor([reason is not None, self.request.signal or 0], dtype=torch.int64, device=device)
        stop, number = trainer.strategy.reduce(found, reduce_op="max").tolist()
        if number and self.request.signal is None:
            self.request.signal = number
            reason = self.request.reason(trainer.global_step)
        return (reason or "with another process") if stop else None

    def _check_first_step(self, trainer: Any, classifier: Classifier) -> None:
        """Raise `ValueError` if processes resume after different steps, as without a shared folder."""
        if trainer.world_size > 1:
            step = torch.tensor([classifier.step, -classifier.step], device=trainer.strategy.root_device)
            most, least = trainer.strategy.reduce(step, reduce_op="max").tolist()
            if most != -least:
                raise InputError(
                    f"the processes read different checkpoints from {self.run.checkpoints}, of steps {-least} to "
                    f"{most}: use a folder that all nodes share"
                )

    def _save(self, trainer: Any, classifier: Classifier) -> None:
        shards = is_sharded(classifier.model)
        if not shards and not trainer.is_global_zero:
            return
        (optimizer,) = trainer.optimizers
        checkpoint = Checkpoint(
            fingerprint=self.run.config.fingerprint,
            step=classifier.step,
            seconds=self.clock(),
            state_dict=classifier.model.state_dict(),
            optimizer=optimizer.state_dict(),
            journal=self.journal.state_dict(),
        )
        (save_sharded_checkpoint if shards else save_checkpoint)(checkpoint, self.run.checkpoints, self._confirm)

    def _confirm(self) -> None:
        confirm_lock(self.run.folder)
