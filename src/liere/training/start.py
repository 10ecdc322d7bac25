"""Starting and resuming a run, with all checks and a cost estimate before the first step."""

from __future__ import annotations

import importlib
import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from liere.files.writing import check_folder
from liere.optional.extras import TRAINING, require
from liere.runs.config import RunConfig
from liere.runs.cost import Cost, estimate_cost
from liere.runs.failed_starts import remove_failed_start
from liere.runs.model import build_model
from liere.runs.process_order import first_process_first
from liere.runs.run import Run, check_new, create_run, open_run
from liere_command.processes import is_first_process
from liere_command.signals import release_signals, say_on_leaving

__all__ = ["SignalStop", "begin_run", "check_again", "check_run", "train_run"]

PATIENCE = 60.0  # seconds for the first process to create the folder
LOCK_PATIENCE = 10.0  # seconds for a killed process to disappear


class SignalStop(KeyboardInterrupt):
    """Raised when Ctrl-C or another signal stopped training; the run is saved and can be resumed.

    Attributes:
        signal: Number of the signal.
    """

    def __init__(self, message: str, signal: int) -> None:
        super().__init__(message)
        self.signal = signal


def check_run(config: RunConfig, folder: Path, tell: Callable[[str], None], *, dry: bool = False) -> None:
    """Build everything once to report problems early, and report the estimated cost of the run.

    Args:
        config: Configuration of the run.
        folder: Current or future folder of the run.
        tell: Function called with two lines.
        dry: Whether the run is not going to be started.

    Raises:
        OSError: If data are missing, or the disk has too little space for checkpoints.
        ValueError: If parts of the configuration do not fit together.
    """
    config.hardware.check(dry=dry)
    for split in ("train", "test"):
        config.data.load(split)
    config.data.load("val", length=config.training.validation_examples)
    cost = estimate_cost(config, build_model(config))
    examples = config.training.steps * config.training.batch_size
    tell(f"{folder.name}: {config.model.encoding}, {examples:,} examples in {config.training.steps:,} steps")
    counted = " for the computation alone; startup, data loading and checkpoints take extra time"
    tell(f"{folder.name}: {cost}{'' if cost.seconds is None else counted}")
    _check_space(folder, cost)


def begin_run(config: RunConfig, folder: Path, tell: Callable[[str], None], *, dry: bool = False) -> Run | None:
    """Check a new run and create its folder; return None for a dry run, which creates nothing.

    Other processes of a distributed run wait for the first one and open the folder that it creates.

    Raises:
        ImportError: If a package for training is missing.
        OSError: If data are missing, or the folder cannot be created.
        ValueError: If parts of the configuration do not fit together, or the folder exists.
    """
    config.hardware.check(dry=dry)
    release_signals(config.hardware.world_size)
    is_first = is_first_process(config.hardware.world_size)
    if dry and not is_first:
        return None
    with nullcontext() if dry else first_process_first(config.hardware):
        if not is_first:
            _wait_for(folder / "config.yaml")
            return open_run(folder)
        check_folder(folder, "--out")
        check_new(folder, config)
        check_run(config, folder, tell, dry=dry)
        if dry:
            return None
        require(*TRAINING)  # report missing packages before the folder is created
        importlib.import_module("liere.training.fit")
        return create_run(folder, config)


def check_again(run: Run, tell: Callable[[str], None], *, dry: bool = False) -> None:
    """Check a run before it is resumed, as `check_run` does, in the first process of a distributed run."""
    hardware = run.config.hardware
    hardware.check(dry=dry)
    release_signals(hardware.world_size)
    with nullcontext() if dry else first_process_first(hardware):
        if is_first_process(hardware.world_size):
            check_run(run.config.model_copy(update={"data": run.data}), run.folder, tell, dry=dry)


def train_run(
    run: Run,
    *,
    tell: Callable[[str], None],
    warn: Callable[[str], None],
    steps: int | None = None,
    logger: Any = None,
    progress: bool = True,
) -> None:
    """Train a run to its end or for some steps, and report how it ended.

    If a run that this command created fails before anything is saved, its folder is removed.

    Args:
        run: The run.
        tell: Function called with a line at the end.
        warn: Function called with lines about progress and damaged checkpoints.
        steps: Maximum number of steps to train now; None for all.
        logger: A Lightning logger to use instead of the configuration's.
        progress: Whether to show progress.

    Raises:
        SignalStop: If a signal stopped it; it is saved and can be resumed.
        OSError: If it cannot be saved; earlier checkpoints are kept.
        ValueError: If another process is training it.
    """
    from liere.training.fit import train
    from liere.training.stop_requests import StoppedError, StopRequest

    say_on_leaving(lambda: _how_to_resume(run))
    request, is_first = StopRequest(further_steps=steps), is_first_process(run.config.hardware.world_size)
    try:
        result = train(run, say=warn, request=request, patience=LOCK_PATIENCE, progress=progress, logger=logger)
    except StoppedError as stop:
        line = f"{run.folder.name}: stopped {stop}{_how_to_resume(run)}"
        if is_first:
            tell(line)
        if request.signal is not None and is_first:
            raise SignalStop(line, request.signal) from None
        if request.signal is not None:
            # Lightning would treat another exit code as a crash and kill the first process.
            raise SystemExit(0) from None
        return
    except Exception:
        if is_first:
            remove_failed_start(run)
        raise
    if is_first:
        tell(
            f"{run.folder.name}: finished after {result['examples']:,} examples and {result['seconds']:.0f} s, "
            f"best validation accuracy {100 * result['best']['accuracy']:.1f} %"
        )
        tell(f"evaluate it with: liere eval {run.folder}")


def _how_to_resume(run: Run) -> str:
    """Return how to resume a stopped run, as the end of a sentence."""
    if any(run.checkpoints.glob("*.ckpt")) or run.best_weights.exists():
        return f"; resume with: liere train --resume {run.folder}"
    return " before its first checkpoint: nothing to save, run the same command again"


def _check_space(folder: Path, cost: Cost) -> None:
    """Raise `OSError` if the disk has no space for three checkpoints (weights, two averages) and two weight files."""
    while not folder.exists():
        folder = folder.parent
    needed = 4 * cost.parameters * (3 * 3 + 2)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(
            f"{folder} has {free / 1e6:,.0f} MB free, but checkpoints need {needed / 1e6:,.0f} MB: "
            "free some space or choose another folder with --out"
        )


def _wait_for(file: Path) -> None:
    """Wait until the first process, possibly on another machine, has created a file."""
    deadline = time.monotonic() + PATIENCE
    while not file.exists():
        if time.monotonic() > deadline:
            raise FileNotFoundError(f"the first process did not create {file} in {PATIENCE:.0f} s: use a shared folder")
        time.sleep(0.5)
