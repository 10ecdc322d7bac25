"""Training of a run from its newest checkpoint to the end."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from typing import Any

from liere.data.loader import lost_workers
from liere.errors import InputError
from liere.files.writing import write_atomically
from liere.machine import machine, versions
from liere.runs.checkpoints import Checkpoint, finish_saving, load_newest
from liere.runs.data_of_run import remember_data
from liere.runs.killed_starts import remove_killed_starts
from liere.runs.locking import confirm_lock
from liere.runs.longer import is_longer, make_longer
from liere.runs.model import build_model, count_parameters, load_model
from liere.runs.other_processes import name_lost_processes, shield_new_processes
from liere.runs.process_order import first_process_first, starts_together
from liere.runs.run import Run
from liere.runs.run_weights import save_weights
from liere.runs.trainer import make_trainer
from liere.training.classifier import Classifier
from liere.training.data_module import TrainingData
from liere.training.freed_memory import keep_freed_memory
from liere.training.loggers import make_logger, open_logger
from liere.training.optimizer import kept_shapes, make_optimizer
from liere.training.progress import Progress
from liere.training.saving import Saver
from liere.training.sharded_model import whole_state_dict
from liere.training.stop_requests import StopRequest, stop_on_signals
from liere.training.training_log import Journal, quiet_events
from liere.vit import VisionTransformer
from liere_command.processes import end_with_first_process, is_first_process

__all__ = ["train"]


def train(
    run: Run,
    *,
    say: Callable[[str], None],
    request: StopRequest | None = None,
    patience: float = 0,
    logger: Any | None = None,
    progress: bool = True,
    profiler: Any | None = None,
) -> dict[str, Any]:
    """Train a run to its end, from its newest valid checkpoint or from the beginning, and return its result.

    If the run has more `training.examples` than the configuration in its folder, training is extended.

    Args:
        run: The run.
        say: Function called with lines about progress and damaged checkpoints.
        request: Request to stop early.
        patience: Seconds to wait for another process that is training the run.
        logger: A Lightning logger to use instead of the configuration's.
        progress: Whether to show progress.
        profiler: A Lightning profiler, called at the start and end of every hook; None for none.

    Raises:
        StoppedError: If it was stopped early, for example by Ctrl-C or SIGTERM; it is saved and can be resumed.
        OSError: If it cannot be saved; earlier checkpoints are kept.
        ValueError: If another process is training it, or the logger cannot start.
    """
    # The first process of a distributed run starts the others, holds the lock and prints messages.
    is_first = is_first_process(run.config.hardware.world_size)
    say = say if is_first else _say_nothing
    request = request or StopRequest()
    end_with_first_process()
    keep_freed_memory()
    with run.lock(patience, request.check) if is_first else nullcontext(), stop_on_signals(request):
        with first_process_first(run.config.hardware, request.check):
            if is_first and is_longer(run):
                kept = make_longer(run)
                results = f"; the results so far are kept in {kept}" if kept else ""
                say(f"{run.folder.name}: training longer{results}")
            if run.is_finished:
                return run.result()
            if damage := run.damage():
                say(f"warning: {damage}: the run does not count as finished")
            if is_first:
                run.remove_unfinished()
                remove_killed_starts(run.folder)
                run.checkpoints.mkdir(exist_ok=True)
                remember_data(run)
                logger = make_logger(run.config.logger, run.folder) if logger is None else logger
            model, checkpoint = _newest_model(run, say)
        return _fit(run, model, checkpoint, request, say, logger if is_first else None, progress, profiler)


def _newest_model(run: Run, say: Callable[[str], None]) -> tuple[VisionTransformer, Checkpoint | None]:
    """Return the model as trained so far, and its checkpoint, if any."""
    config, model = run.config, build_model(run.config, run.facts)
    checkpoint, refused = load_newest(
        run.checkpoints,
        config.fingerprint,
        config.training.steps,
        like=model.state_dict(),
        kept=kept_shapes(make_optimizer(model, config.optimizer)),
        set_aside=is_first_process(config.hardware.world_size),
    )
    for line in refused:
        say(f"warning: {line}")
    if checkpoint is None and (source := run.source()) is not None:
        _start_from(model, source, say)
    if checkpoint is not None:
        model.load_state_dict(checkpoint.state_dict)
        say(f"{run.folder.name}: resuming after step {checkpoint.step:,} of {config.training.steps:,}")
    elif refused:
        say(f"{run.folder.name}: no valid checkpoint is left, starting from the beginning")
    return model, checkpoint


def _start_from(model: VisionTransformer, source: Run, say: Callable[[str], None]) -> None:
    """Load the final weights of a finished run into a model."""
    source.result()  # raises an error if it is not finished
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model.load_state_dict(load_model(source.config, source.final_weights, source.facts).state_dict())
        for warning in told:
            say(f"warning: training.start_from {source.folder}: {warning.message}")
    except RuntimeError as error:
        raise InputError(
            f"training.start_from {source.folder} has another model: {' '.join(str(error).split())}; for another "
            "image size, set model.image_size to the image size of that run"
        ) from None


def _say_nothing(line: str) -> None:
    pass


def _fit(
    run: Run,
    model: VisionTransformer,
    checkpoint: Checkpoint | None,
    request: StopRequest,
    say: Callable[[str], None],
    logger: Any | None,
    progress: bool,
    profiler: Any | None,
) -> dict[str, Any]:
    config, training = run.config, run.config.training
    step, seconds = (checkpoint.step, checkpoint.seconds) if checkpoint else (0, 0.0)
    start = time.monotonic()

    def clock() -> float:
        return seconds + time.monotonic() - start

    classifier = Classifier(model, config, run.facts, first_step=step)
    journal = Journal(run, checkpoint.journal if checkpoint else None, step, clock, logger)
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
            profiler=profiler,
        )
        shield_new_processes(trainer)
        data = TrainingData(run, classifier)
        if not starts_together(config.hardware) and is_first_process(config.hardware.world_size):
            request.check()  # before other processes start
        if logger is not None:
            open_logger(logger, config.model_dump(mode="json"))
        remedy = f"resume with: liere train --resume {run.folder}"
        with quiet_events(), lost_workers(remedy), name_lost_processes(run, remedy):
            trainer.fit(classifier, datamodule=data)
        step = classifier.step
    return _finish(run, model, journal, step=step, seconds=clock())


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
    weights = whole_state_dict(model)
    if is_first_process(run.config.hardware.world_size):
        confirm = partial(confirm_lock, run.folder)
        confirm()
        finish_saving(run.checkpoints)  # needed if no steps were left to train
        save_weights(weights, run.final_weights, run.facts, confirm)
        write_atomically(run.result_file, json.dumps(result, indent=1) + "\n", confirm)
    return result
