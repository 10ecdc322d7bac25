"""Saving a run while it is trained, and stopping it so that nothing is lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import torch

from liere.optional.lightning_import import import_lightning
from liere.runs.checkpoints import Checkpoint, save_checkpoint, save_weights
from liere.runs.run import Run
from liere.training.classifier import Classifier
from liere.training.training_log import Journal
from liere_command.signals import SIGNALS

pl = import_lightning()

__all__ = ["Saver", "StopRequest", "StoppedError", "shield_new_processes", "stop_on_signals"]


class StoppedError(Exception):
    """A run was stopped before its end. What it has done is saved, if it has done anything."""


@dataclass
class StopRequest:
    """Why a run should stop after this step, if it should.

    Attributes:
        signal: The signal that asked for it.
        further_steps: Stop after so many; None for the run's end.
        parent: Stop when this can be read, as `local_processes.Slot` has it; None to live on without a parent.
    """

    signal: int | None = None
    further_steps: int | None = None
    parent: Connection | None = None

    def reason(self, steps: int) -> str | None:
        """Return why to stop after so many steps of this process, or None to go on."""
        if self.signal is not None:
            return f"by {signal.Signals(self.signal).name}"
        if self.parent is not None and self.parent.poll():
            return "because its parent is gone"
        if self.further_steps is not None and steps >= self.further_steps:
            return "as asked"
        return None


@contextmanager
def stop_on_signals(request: StopRequest) -> Iterator[None]:
    """Turn the first of each signal, Ctrl-C say, into a request; a second one does what it always does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}
    # What was started to ignore a signal, in the background say, goes on ignoring it.
    before = {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}

    def ask(number: int, frame: Any) -> None:
        request.signal = number
        signal.signal(number, before[number])

    for number in before:
        signal.signal(number, ask)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # those that `leave_on_signals` has kept
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def shield_new_processes(trainer: Any) -> None:
    """Have processes that Lightning starts keep signals until they can answer: see `leave_on_signals`.

    While Python itself is starting, a signal would end them, and with them the run.
    """
    launcher = getattr(trainer.strategy, "launcher", None)
    start = getattr(launcher, "_call_children_scripts", None)
    if start is None or not hasattr(signal, "pthread_sigmask"):
        return

    def start_shielded() -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # new processes inherit it
        try:
            start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    launcher._call_children_scripts = start_shielded  # type: ignore[union-attr]


class Saver(pl.Callback):  # type: ignore[misc, name-defined]
    """Save the run every few steps, after validations, and when it is asked to stop.

    Args:
        run: The run.
        journal: Its log, which is saved along; it comes before this callback.
        checkpoint: What the run goes on from; None at its beginning.
        request: Asked after every step.
        clock: Returns the seconds that the run has taken.
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
        """Give the optimizer its state back, or stop if that was asked for; learning rates are the schedule's."""
        if reason := self._common_reason(trainer):
            raise StoppedError(reason)
        if self.checkpoint is not None:
            (optimizer,) = trainer.optimizers
            groups = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict(self.checkpoint.optimizer | {"param_groups": groups})
            self.checkpoint = None  # frees the memory

    def on_train_batch_end(
        self, trainer: Any, classifier: Classifier, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Save where it is due; a step with a validation is saved after that."""
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
            trainer.strategy.barrier()  # nobody leaves before it is saved
            raise StoppedError(reason)

    def on_validation_end(self, trainer: Any, classifier: Classifier) -> None:
        """Save, the best weights too; stop if that was asked for or the target is reached."""
        score, target = classifier.validation, self.run.config.training.stop_at_accuracy
        assert score is not None
        if self.journal.best is not None and self.journal.best["step"] == classifier.step and trainer.is_global_zero:
            save_weights(classifier.model.state_dict(), self.run.best_weights)
        if target is not None and score.accuracy >= target:
            self.journal.reached_target = True
            trainer.should_stop = True
        self._save(trainer, classifier)
        reason = self._reason(trainer)
        if reason and not trainer.should_stop and classifier.step < self.run.config.training.steps:
            trainer.strategy.barrier()
            raise StoppedError(reason)

    def _reason(self, trainer: Any) -> str | None:
        """Return why to stop after this step; asking other processes takes time, so that is not done every step."""
        is_due = trainer.global_step % self.run.config.training.log_every == 0
        if trainer.world_size == 1 or is_due or trainer.global_step == self.request.further_steps:
            return self._common_reason(trainer)
        return None

    def _common_reason(self, trainer: Any) -> str | None:
        """Return why to stop; when one process has a reason, all have it, and its signal."""
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

    def _save(self, trainer: Any, classifier: Classifier) -> None:
        if trainer.is_global_zero:
            (optimizer,) = trainer.optimizers
            checkpoint = Checkpoint(
                fingerprint=self.run.config.fingerprint,
                step=classifier.step,
                seconds=self.clock(),
                state_dict=classifier.model.state_dict(),
                optimizer=optimizer.state_dict(),
                journal=self.journal.state_dict(),
            )
            save_checkpoint(checkpoint, self.run.checkpoints)
