"""The log of a run: one entry every few steps and one per validation, as CSV and for TensorBoard or another logger."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import math
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from torch import Tensor

from liere.errors import InputError
from liere.files.writing import write_atomically
from liere.optional.lightning_import import import_lightning
from liere.runs.locking import confirm_lock
from liere.runs.records import COLUMNS, is_log
from liere.runs.run import Run
from liere.training.classifier import Classifier, Score

pl = import_lightning()

__all__ = ["Journal", "quiet_events"]

EVENT_THREAD = "_AsyncWriterThread"  # TensorBoard's writer


class Journal(pl.Callback):  # type: ignore[misc, name-defined]
    """Write the log; when a run is resumed, entries of repeated steps are removed first.

    Losses stay on the device until they are written. With several processes, the training loss is the first one's.

    Args:
        run: The run to log.
        state: Result of `state_dict` in the checkpoint; None at the start.
        first_step: Steps completed before, if resumed.
        clock: Function that returns the training time in seconds.
        logger: A Lightning logger, already started, to use instead of TensorBoard; None for TensorBoard.
    """

    def __init__(
        self,
        run: Run,
        state: dict[str, Any] | None,
        first_step: int,
        clock: Callable[[], float],
        logger: Any | None = None,
    ) -> None:
        self.run, self.first_step, self.clock, self.logger = run, first_step, clock, logger
        state = state or {"losses": [0.0, 0], "best": None, "reached_target": False}
        self.loss_sum: float | Tensor = state["losses"][0]
        self.loss_count: int = state["losses"][1]
        self.best: dict[str, Any] | None = state["best"]
        self.reached_target: bool = state["reached_target"]
        self.latest: dict[str, float] = {}
        self.learning_rate = 0.0
        self.events: Any = None

    def state_dict(self) -> dict[str, Any]:
        """Return the entries not written yet, and the best validation."""
        losses = [float(self.loss_sum), self.loss_count]
        return {"losses": losses, "best": self.best, "reached_target": self.reached_target}

    def on_train_start(self, trainer: Any, classifier: Classifier) -> None:
        """Open the log."""
        if trainer.is_global_zero:
            confirm_lock(self.run.folder)
            log = self.run.metrics
            if not is_log(log):
                log.replace(log.with_name(f"refused-{log.name}"))  # it may be of use to somebody
            kept = (row for row in self.run.metric_rows() if int(row["step"]) <= self.first_step)
            header = dict(zip(COLUMNS, COLUMNS, strict=True))
            write_atomically(log, _lines(itertools.chain([header], kept)))
            if self.logger is not None:
                return
            from torch.utils.tensorboard import SummaryWriter

            # TensorBoard hides events of repeated steps.
            folder = self.run.folder / "tensorboard"
            try:
                self.events = SummaryWriter(str(folder), purge_step=self.first_step + 1)
            except OSError as error:
                raise _failure(folder, error) from error

    def on_before_optimizer_step(self, trainer: Any, classifier: Classifier, optimizer: Any) -> None:
        """Record the learning rate of the step before the schedule advances."""
        self.learning_rate = max(group["lr"] for group in optimizer.param_groups)

    def on_train_batch_end(
        self, trainer: Any, classifier: Classifier, outputs: dict[str, Tensor], batch: Any, batch_idx: int
    ) -> None:
        """Add the loss; write an entry if due."""
        config = classifier.config.training
        self.loss_sum = self.loss_sum + config.accumulate * outputs["loss"].detach()  # Lightning has divided it
        self.loss_count += 1
        if (batch_idx + 1) % config.accumulate == 0 and classifier.step % config.log_every == 0:
            self.latest["train_loss"] = float(self.loss_sum) / self.loss_count
            if not math.isfinite(self.latest["train_loss"]):
                raise InputError(
                    f"the loss is {self.latest['train_loss']} at step {classifier.step}, so training has diverged: "
                    "start a run with a lower optimizer.learning_rate or optimizer.clip, or more optimizer.warmup_steps"
                )
            values = {"learning_rate": self.learning_rate, "train_loss": self.latest["train_loss"]}
            self._write(trainer, classifier.step, values)
            self.loss_sum, self.loss_count = 0.0, 0

    def on_validation_end(self, trainer: Any, classifier: Classifier) -> None:
        """Write an entry, and keep the best validation."""
        score = classifier.validation
        assert score is not None
        self.latest["val_accuracy"] = score.accuracy
        self._write(trainer, classifier.step, {"val_loss": score.loss, "val_accuracy": score.accuracy})
        if self.is_best(score):
            self.best = {"step": classifier.step, "accuracy": score.accuracy, "loss": score.loss}

    def teardown(self, trainer: Any, classifier: Classifier, stage: str) -> None:
        """Close the log."""
        self._close("success")

    def on_exception(self, trainer: Any, classifier: Classifier, exception: BaseException) -> None:
        """Close the log after an error or a stop."""
        self._close("failed")

    def is_best(self, score: Score) -> bool:
        """Return whether a validation is better than all before it."""
        return self.best is None or (score.accuracy, -score.loss) > (self.best["accuracy"], -self.best["loss"])

    def _close(self, status: str) -> None:
        logger, self.logger = self.logger, None
        if logger is not None:
            logger.save()
            logger.finalize(status)
        if self.events is not None:
            with contextlib.suppress(OSError):  # metrics.csv has the same entries
                self.events.close()
            self.events = None

    def _write(self, trainer: Any, step: int, values: dict[str, float]) -> None:
        if not trainer.is_global_zero:
            return
        confirm_lock(self.run.folder, is_brief=True)
        try:
            if self.logger is not None:
                self.logger.log_metrics(values, step=step)
            else:
                for name, value in values.items():
                    self.events.add_scalar(name, value, step)
        except OSError as error:
            place = self.run.folder / "tensorboard" if self.logger is None else type(self.logger).__name__
            raise _failure(place, error) from error
        examples = step * self.run.config.training.batch_size
        row = {"step": step, "examples": examples, "seconds": round(self.clock(), 2)} | values
        _append(self.run.metrics, _lines([row]))


def _lines(rows: Iterable[dict[str, Any]]) -> str:
    text = io.StringIO()
    csv.DictWriter(text, COLUMNS, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise _failure(path, error) from error


def _failure(path: Path | str, error: OSError) -> OSError:
    return OSError(f"{path} could not be written ({error.strerror}): free some space or fix the permissions")


@contextlib.contextmanager
def quiet_events() -> Iterator[None]:
    """Keep TensorBoard's thread from printing write errors, which the next log entry raises anyway."""
    before = threading.excepthook

    def hook(failure: threading.ExceptHookArgs) -> None:
        is_expected = isinstance(failure.exc_value, OSError) and type(failure.thread).__name__ == EVENT_THREAD
        if not is_expected:
            before(failure)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = before
