"""What the process of a run does: train and test it, with its output in its log."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TextIO

from liere.comparison.executors.contract import Task
from liere.comparison.sent_data import SentData
from liere.errors import UserError
from liere.runs.run import Run, create_run
from liere.training.stop_requests import StoppedError, StopRequest
from liere_command.signals import unblock_signals

__all__ = ["FAILED", "STOPPED", "receive", "work"]

FAILED, STOPPED = 1, 130
LOCK_PATIENCE = 30.0  # seconds; processes of a killed comparison notice it only after their next step


def work(task: Task, request: StopRequest, testing: AbstractContextManager[object] | None = None) -> int:
    """Train and test a run, from wherever it is now, and return an exit code.

    Args:
        task: The run.
        request: A request to stop training.
        testing: A context in which tests are done: they have nothing to save, and may be stopped anywhere.

    Returns:
        0, `FAILED` after an error, whose message ends the log, or `STOPPED` after a request to stop.
    """
    with _output_to(task.log) as log:
        try:
            with unblock_signals():
                _train_and_test(task, request, testing or nullcontext())
        except (StoppedError, KeyboardInterrupt) as stop:
            log.write(f"stopped {stop}".rstrip() + "\n")
            return STOPPED
        except UserError as error:
            log.write(f"error: {error}\n")
            return FAILED
        except Exception:
            traceback.print_exc()  # here, because the log is closed afterwards
            return FAILED
    return 0


def receive(task: Task) -> None:
    """Make available in this process what the process that planned the run has: encodings, data, modules, folder."""
    if task.cwd is not None and task.cwd.is_dir():
        os.chdir(task.cwd)
    sys.path += [path for path in task.paths if path not in sys.path]
    if task.encoding is not None:
        task.encoding.receive()
    if isinstance(task.data, SentData):
        task.data.receive()  # other data are available since they were unpickled


def _train_and_test(task: Task, request: StopRequest, testing: AbstractContextManager[object]) -> None:
    from liere.evaluation.evaluate import evaluate
    from liere.training.fit import train

    def say(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    receive(task)
    planned = task.planned
    exists = (planned.folder / "config.yaml").exists()
    # A resumed run uses the hardware and the data folder of the current call, not those it was started with.
    root = getattr(planned.config.data, "root", None)
    there = Run(planned.folder, planned.config, None if root is None else Path(root))
    run = there if exists else create_run(planned.folder, planned.config)
    train(run, say=say, request=request, patience=LOCK_PATIENCE)
    if untested := planned.untested(run):
        with testing:
            evaluate(run, untested, examples=planned.examples, say=say)


@contextmanager
def _output_to(file: Path) -> Iterator[TextIO]:
    """Append all output of this process, also that of libraries in C, to a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    before, kept = (sys.stdout, sys.stderr), (os.dup(1), os.dup(2))
    with file.open("a") as log:
        try:
            for number in (1, 2):
                os.dup2(log.fileno(), number)
            sys.stdout = sys.stderr = log
            yield log
        finally:
            log.flush()
            sys.stdout, sys.stderr = before
            for number, copy in zip((1, 2), kept, strict=True):
                os.dup2(copy, number)
                os.close(copy)
