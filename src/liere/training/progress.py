"""How far a run is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from liere.optional.lightning_import import import_lightning
from liere.training.classifier import Classifier
from liere.training.training_log import Journal

pl = import_lightning()

__all__ = ["Progress"]

SECONDS_BETWEEN_LINES = 30.0
LONG_WAIT = 0.2  # share of the time from which on it is told


class Progress(pl.Callback):  # type: ignore[misc, name-defined]
    """Show examples, throughput, time left, the latest figures of the log, and whether training waits for data.

    Args:
        journal: Where figures come from.
        name: What to call the run.
        say: Receives a line where standard error is not a terminal.
    """

    def __init__(self, journal: Journal, name: str, say: Callable[[str], None]) -> None:
        self.journal, self.name, self.say = journal, name, say
        self.bar: Any = None
        self.start = self.last_line = 0.0
        self.first = 0
        self.waited = 0.0  # seconds, for data
        self.last_end: float | None = None

    def on_train_start(self, trainer: Any, classifier: Classifier) -> None:
        """Begin."""
        training = classifier.config.training
        self.first = classifier.step * training.batch_size
        self.start = self.last_line = time.monotonic()
        if trainer.is_global_zero and sys.stderr.isatty():
            from tqdm import tqdm

            total = training.steps * training.batch_size
            self.bar = tqdm(
                total=total, initial=self.first, desc=self.name, unit=" examples", unit_scale=True, dynamic_ncols=True
            )

    def on_train_batch_start(self, trainer: Any, classifier: Classifier, *_: Any) -> None:
        """Add up how long the batch was waited for."""
        if self.last_end is not None:
            self.waited += time.monotonic() - self.last_end

    def on_validation_start(self, trainer: Any, classifier: Classifier) -> None:
        """Do not count a validation as waiting."""
        self.last_end = None

    def on_train_epoch_end(self, trainer: Any, classifier: Classifier) -> None:
        """Do not count what comes between two parts of training as waiting."""
        self.last_end = None

    def on_train_batch_end(self, trainer: Any, classifier: Classifier, *_: Any) -> None:
        """Go on."""
        self.last_end = time.monotonic()
        if not trainer.is_global_zero:
            return
        training = classifier.config.training
        done = classifier.step * training.batch_size
        if self.bar is not None:
            self.bar.set_postfix_str(self._figures(), refresh=False)
            self.bar.update(done - self.bar.n)
        elif time.monotonic() - self.last_line > SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            total = training.steps * training.batch_size
            rate = max(done - self.first, 1) / (self.last_line - self.start)
            left = timedelta(seconds=round((total - done) / rate))
            self.say(
                f"{self.name}: {done:,} of {total:,} examples, {rate:,.0f} a second, {left} left{self._figures(', ')}"
            )

    def on_train_end(self, trainer: Any, classifier: Classifier) -> None:
        """Leave the bar as it is."""
        self._close()

    def on_exception(self, trainer: Any, classifier: Classifier, exception: BaseException) -> None:
        """Make room for the message."""
        self._close()

    def _close(self) -> None:
        if self.bar is not None:
            self.bar.close()
            self.bar = None

    def _figures(self, before: str = "") -> str:
        latest = self.journal.latest
        parts = [f"loss {latest['train_loss']:.3f}"] if "train_loss" in latest else []
        parts += [f"validation {100 * latest['val_accuracy']:.1f} %"] if "val_accuracy" in latest else []
        share = self.waited / max(time.monotonic() - self.start, 1e-9)
        parts += [f"{100 * share:.0f} % of the time waiting for data (hardware.workers)"] if share > LONG_WAIT else []
        return before + ", ".join(parts) if parts else ""
