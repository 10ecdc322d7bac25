"""The progress line of a run."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from liere.optional.lightning_import import import_lightning
from liere.terminal.progress import ProgressLine
from liere.training.classifier import Classifier
from liere.training.training_log import Journal

pl = import_lightning()

__all__ = ["Progress"]

LONG_WAIT = 0.2  # fraction of the time above which waiting is shown


class Progress(pl.Callback):  # type: ignore[misc, name-defined]
    """Show examples, throughput, time left, the latest figures of the log, and whether training waits for data.

    Args:
        journal: Log of the run, the source of the metrics.
        name: Name of the run.
        say: Function called with a line from time to time if standard error is not a terminal.
        is_shown: Whether to show anything.
    """

    def __init__(self, journal: Journal, name: str, say: Callable[[str], None], *, is_shown: bool = True) -> None:
        self.journal, self.name = journal, name
        self.line = ProgressLine(say, is_shown=is_shown)
        self.start = 0.0
        self.first = 0
        self.waited = 0.0  # seconds spent waiting for data
        self.last_end: float | None = None

    def on_train_start(self, trainer: Any, classifier: Classifier) -> None:
        """Start the clock."""
        training = classifier.config.training
        self.first = classifier.step * training.batch_size
        self.start = time.monotonic()

    def on_train_batch_start(self, trainer: Any, classifier: Classifier, *_: Any) -> None:
        """Add the time spent waiting for the batch."""
        if self.last_end is not None:
            self.waited += time.monotonic() - self.last_end

    def on_validation_start(self, trainer: Any, classifier: Classifier) -> None:
        """Do not count validation as waiting."""
        self.last_end = None

    def on_train_epoch_end(self, trainer: Any, classifier: Classifier) -> None:
        """Do not count the time between two Lightning epochs as waiting."""
        self.last_end = None

    def on_train_batch_end(self, trainer: Any, classifier: Classifier, *_: Any) -> None:
        """Update the progress line."""
        self.last_end = time.monotonic()
        if not trainer.is_global_zero:
            return
        training = classifier.config.training
        done, total = classifier.step * training.batch_size, training.steps * training.batch_size
        rate = max(done - self.first, 1) / max(time.monotonic() - self.start, 1e-9)
        left = timedelta(seconds=round((total - done) / rate))
        share = f"{100 * done // total} %, {done:,} of {total:,} examples"
        self.line.show(f"{self.name}: {share}, {rate:,.0f} per second, {left} left{self._figures()}")

    def on_train_end(self, trainer: Any, classifier: Classifier) -> None:
        """Clear the progress line before the result is printed."""
        self.line.clear()

    def on_exception(self, trainer: Any, classifier: Classifier, exception: BaseException) -> None:
        """Clear the progress line before the error is printed."""
        self.line.clear()

    def _figures(self) -> str:
        latest = self.journal.latest
        parts = [f"loss {latest['train_loss']:.3f}"] if "train_loss" in latest else []
        parts += [f"validation {100 * latest['val_accuracy']:.1f} %"] if "val_accuracy" in latest else []
        share = self.waited / max(time.monotonic() - self.start, 1e-9)
        parts += [f"{100 * share:.0f} % of the time waiting for data (hardware.workers)"] if share > LONG_WAIT else []
        return "".join(f", {part}" for part in parts)
