"""Beginning and resuming a run: everything is checked, and what it costs is told, before the first step."""

from __future__ import annotations

import importlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from liere.optional.extras import TRAINING, require
from liere.runs.config import RunConfig
from liere.runs.cost import Cost, estimate_cost
from liere.runs.model import build_model
from liere.runs.run import Run, check_new, create_run, open_run
from liere_command.processes import is_first_process
from liere_command.signals import say_on_leaving

__all__ = ["SignalStop", "begin_run", "check_run", "train_run"]

PATIENCE = 60.0  # seconds for the first process to make the folder
LOCK_PATIENCE = 10.0  # seconds for a process that was killed to be gone


class SignalStop(KeyboardInterrupt):
    """Ctrl-C or another signal stopped training. What was done is saved, and can be resumed.

    Attributes:
        signal: Its number.
    """

    def __init__(self, message: str, signal: int) -> None:
        super().__init__(message)
        self.signal = signal


def check_run(config: RunConfig, folder: Path, tell: Callable[[str], None]) -> None:
    """Build everything once, so that what does not fit is told now, and tell what the run will cost.

    Args:
        config: The run.
        folder: Where it is or will be.
        tell: Receives two lines.

    Raises:
        OSError: If data are missing, or the disk has no room for checkpoints.
        ValueError: If something does not fit.
    """
    config.hardware.check()
    for split in ("train", "test"):
        config.data.load(split)
    config.check_validation(len(config.data.load("val", length=config.training.validation_examples)))
    cost = estimate_cost(config, build_model(config))
    examples = config.training.steps * config.training.batch_size
    tell(f"{folder.name}: {config.model.encoding}, {examples:,} examples in {config.training.steps:,} steps")
    counted = " for this arithmetic; start-up, data loading and checkpoints come on top"
    tell(f"{folder.name}: {cost}{'' if cost.seconds is None else counted}")
    _check_space(folder, cost)


def begin_run(config: RunConfig, folder: Path, tell: Callable[[str], None], *, dry: bool = False) -> Run | None:
    """Make the folder of a new run, with everything checked; None for a dry run, which makes nothing.

    Further processes of a distributed run wait for the first one, and open what it has made.

    Raises:
        ImportError: If a package for training is missing.
        OSError: If data are missing, or the folder cannot be made.
        ValueError: If something does not fit, or is in the way.
    """
    if not is_first_process():
        if dry:
            return None
        _wait_for(folder / "config.yaml")
        return open_run(folder)
    check_new(folder, config)
    check_run(config, folder, tell)
    if dry:
        return None
    require(*TRAINING)  # a missing package is an error before there is a folder
    importlib.import_module("liere.training.fit")
    return create_run(folder, config)


def train_run(
    run: Run,
    *,
    tell: Callable[[str], None],
    warn: Callable[[str], None],
    steps: int | None = None,
    logger: Any = None,
    progress: bool = True,
) -> None:
    """Train a run to its end, or so many steps, and tell how it ended.

    Args:
        run: The run.
        tell: Receives a line when it ends.
        warn: Receives lines about progress and damaged checkpoints.
        steps: Take at most so many steps now; None for all.
        logger: A Lightning logger instead of the configuration's.
        progress: Whether to show how far it is.

    Raises:
        SignalStop: If a signal stopped it. It is saved, and can be resumed.
        OSError: If it cannot be saved; earlier checkpoints are still there.
        ValueError: If another process is training it.
    """
    from liere.training.fit import train
    from liere.training.stop_requests import StoppedError, StopRequest

    say_on_leaving(lambda: _how_to_resume(run))
    request = StopRequest(further_steps=steps)
    try:
        result = train(run, say=warn, request=request, patience=LOCK_PATIENCE, progress=progress, logger=logger)
    except StoppedError as stop:
        line = f"{run.folder.name}: stopped {stop}{_how_to_resume(run)}"
        if is_first_process():
            tell(line)
        if request.signal is not None and is_first_process():
            raise SignalStop(line, request.signal) from None
        if request.signal is not None:
            # Lightning takes another process's exit code for a crash, and would kill the first one for it.
            raise SystemExit(0) from None
        return
    if is_first_process():
        tell(
            f"{run.folder.name}: finished after {result['examples']:,} examples and {result['seconds']:.0f} s, "
            f"best validation accuracy {100 * result['best']['accuracy']:.1f} %"
        )
        tell(f"evaluate it with: liere eval {run.folder}")


def _how_to_resume(run: Run) -> str:
    """Return what to do with a run that was stopped, as the end of a sentence."""
    if any(run.checkpoints.glob("*.ckpt")) or run.best_weights.exists():
        return f"; resume with: liere train --resume {run.folder}"
    return " before its first checkpoint: nothing to save, run the same command again"


def _check_space(folder: Path, cost: Cost) -> None:
    """Make sure that checkpoints will fit: three for a moment, each of weights and two averages, and weights twice."""
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
    """Wait until the first process, maybe on another machine, has made a file."""
    deadline = time.monotonic() + PATIENCE
    while not file.exists():
        if time.monotonic() > deadline:
            raise FileNotFoundError(f"the first process has not made {file} in {PATIENCE:.0f} s: is the folder shared?")
        time.sleep(0.5)
