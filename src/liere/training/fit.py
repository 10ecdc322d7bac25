"""Train a run from wherever it is to its end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

from torch.utils.data import DataLoader

from liere.data.batches import EvaluationBatches, ExampleOrder, TrainingBatches, make_loader
from liere.data.examples import Batch
from liere.errors import InputError
from liere.files.writing import write_atomically
from liere.machine import machine, versions
from liere.optional.lightning_import import import_lightning
from liere.runs.checkpoints import Checkpoint, finish_saving, load_newest, save_weights
from liere.runs.config import RunConfig
from liere.runs.model import build_model, count_parameters, load_model
from liere.runs.run import Run, remove_killed_starts
from liere.runs.trainer import make_trainer
from liere.training.classifier import Classifier
from liere.training.optimizer import kept_shapes, make_optimizer
from liere.training.progress import Progress
from liere.training.saving import Saver, StoppedError, StopRequest, shield_new_processes, stop_on_signals
from liere.training.training_log import Journal, quiet_events
from liere.vit import VisionTransformer
from liere_command.processes import end_with_first_process, is_first_process

pl = import_lightning()

__all__ = ["train"]


def train(
    run: Run,
    *,
    say: Callable[[str], None],
    request: StopRequest | None = None,
    patience: float = 0,
    progress: bool = True,
) -> dict[str, Any]:
    """Train a run to its end, from its newest whole checkpoint or from the beginning, and return its result.

    Args:
        run: The run.
        say: Receives lines about progress and damaged checkpoints.
        request: When to stop earlier.
        patience: Seconds to wait for another process that is training it.
        progress: Whether to show how far it is.

    Raises:
        StoppedError: If it was stopped earlier, by Ctrl-C or SIGTERM say. It is saved and can be resumed.
        OSError: If it cannot be saved; earlier checkpoints are still there.
        ValueError: If another process is training it.
    """
    # Further processes of a distributed run are started by the first one, which has the lock and does the talking.
    is_first = is_first_process()
    say = say if is_first else _say_nothing
    request = request or StopRequest()
    end_with_first_process()
    with run.lock(patience) if is_first else nullcontext(), stop_on_signals(request):
        if run.is_finished:
            return run.result()
        if damage := run.damage():
            say(f"warning: {damage}: the run does not count as finished")
        config = run.config
        if is_first:
            run.remove_unfinished()
            remove_killed_starts(run.folder)
            run.checkpoints.mkdir(exist_ok=True)
        model = build_model(config)
        checkpoint, refused = load_newest(
            run.checkpoints,
            config.fingerprint,
            config.training.steps,
            like=model.state_dict(),
            kept=kept_shapes(make_optimizer(model, config.optimizer)),
            set_aside=is_first,
        )
        for line in refused:
            say(f"warning: {line}")
        if checkpoint is None and (source := run.source()) is not None:
            _start_from(model, source)
        if checkpoint is not None:
            model.load_state_dict(checkpoint.state_dict)
            say(f"{run.folder.name}: going on after step {checkpoint.step:,} of {config.training.steps:,}")
        elif refused:
            say(f"{run.folder.name}: no whole checkpoint is left, starting from the beginning")
        return _fit(run, model, checkpoint, request, say, progress)


def _start_from(model: VisionTransformer, source: Run) -> None:
    """Give a model the final weights of a finished run."""
    source.result()  # whether it is finished
    try:
        model.load_state_dict(load_model(source.config, source.final_weights).state_dict())
    except RuntimeError as error:
        raise InputError(
            f"training.start_from {source.folder} is of another model: {' '.join(str(error).split())}; at another "
            "image size, say with model.image_size what the first one was trained at"
        ) from None


def _say_nothing(line: str) -> None:
    pass


def _fit(
    run: Run,
    model: VisionTransformer,
    checkpoint: Checkpoint | None,
    request: StopRequest,
    say: Callable[[str], None],
    progress: bool,
) -> dict[str, Any]:
    config, training = run.config, run.config.training
    step, seconds = (checkpoint.step, checkpoint.seconds) if checkpoint else (0, 0.0)
    start = time.monotonic()

    def clock() -> float:
        return seconds + time.monotonic() - start

    classifier = Classifier(model, config, first_step=step)
    journal = Journal(run, checkpoint.journal if checkpoint else None, step, clock)
    if step < training.steps and not (journal.reached_target and training.stop_at_accuracy is not None):
        trainer = make_trainer(
            config,
            callbacks=[
                journal,
                Saver(run, journal, checkpoint, request, clock),
                Progress(journal, run.folder.name, say, is_shown=progress),
            ],
            max_steps=training.steps - step,
            max_epochs=-1,
            num_sanity_val_steps=0,
            accumulate_grad_batches=training.accumulate,
            gradient_clip_val=config.optimizer.clip,
            reload_dataloaders_every_n_epochs=1,
        )
        shield_new_processes(trainer)
        data = _Data(config, classifier)
        if is_first_process() and (reason := request.reason(0)):
            raise StoppedError(reason)  # before other processes are started
        with quiet_events():
            trainer.fit(classifier, datamodule=data)
        step = classifier.step
    return _finish(run, model, journal, step=step, seconds=clock())


class _Data(pl.LightningDataModule):  # type: ignore[misc, name-defined]
    """The loaders of a run. What Lightning calls an epoch are the steps up to the next validation."""

    def __init__(self, config: RunConfig, classifier: Classifier) -> None:
        super().__init__()
        self.config, self.classifier = config, classifier
        self.train_data = config.data.load("train")
        self.val_data = config.data.load("val", length=config.training.validation_examples)
        config.check_validation(len(self.val_data))
        self.order = ExampleOrder(len(self.train_data), config.training.seed)

    def train_dataloader(self) -> DataLoader[Batch]:
        """Return the batches from the present step to the next validation."""
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
        """Return the examples to validate with, this process's part of them."""
        size = self.config.training.part_size
        batches = EvaluationBatches(len(self.val_data), size, self.trainer.global_rank, self.trainer.world_size)
        return self._loader(self.val_data, batches)

    def _loader(self, data: Any, batches: Any) -> DataLoader[Batch]:
        on_gpu = self.trainer.strategy.root_device.type == "cuda"
        return make_loader(data, batches, workers=self.config.hardware.workers, pin_memory=on_gpu)


def _finish(run: Run, model: VisionTransformer, journal: Journal, *, step: int, seconds: float) -> dict[str, Any]:
    result = {
        "step": step,
        "examples": step * run.config.training.batch_size,
        "seconds": round(seconds, 2),
        "parameters": count_parameters(model),
        "encoding_parameters": count_parameters(model.encoding),
        "best": journal.best,
        "fingerprint": run.config.fingerprint,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(("torch", "lightning")),
    }
    if is_first_process():
        finish_saving(run.checkpoints)  # where no step was left to take
        save_weights(model.state_dict(), run.final_weights)
        write_atomically(run.result_file, json.dumps(result, indent=1) + "\n")
    return result
