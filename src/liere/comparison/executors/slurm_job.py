"""What a SLURM job does: train and test a run; when its time is over or it is preempted, save, requeue, and resume."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from liere.comparison.executors.contract import Task
from liere.comparison.executors.resources import alone
from liere.comparison.executors.storage import StorageToken
from liere.comparison.executors.work import STOPPED, work
from liere.training.stop_requests import StoppedError, StopRequest

__all__ = ["RunJob"]

GRACE = 20.0  # seconds after SIGTERM in which the signal for requeuing may follow, if it was not a cancellation


class RunJob:
    """The function that submitit calls in a job, and what it asks for when the job is to be requeued.

    submitit would requeue in the middle of a step. Here its signal is a request to stop: the run is saved first.
    """

    def __call__(self, task: Task, token: StorageToken) -> int:
        """Train and test a run, and return an exit code; does not return if the job is requeued or stopped."""
        import submitit

        environment = submitit.JobEnvironment()
        number = environment._usr_sig()
        requeue: Any = signal.getsignal(number)
        request = StopRequest()

        def ask(number: int, frame: Any) -> None:
            request.signal = number

        signal.signal(number, ask)
        try:
            token.check()
            with alone():
                code = work(task, request, _stopped_by(request, number))
        finally:
            signal.signal(number, requeue)
        if code == STOPPED:
            if request.signal == number:
                requeue(number, None)  # ends this process
            if environment.cluster == "slurm":
                time.sleep(GRACE)  # in a preemption, SIGTERM comes before the signal for requeuing
            os._exit(STOPPED)  # without a result, since there is none
        return code

    def checkpoint(self, task: Task, token: StorageToken) -> Any:
        """Return what a requeued job does: the same, since the state is in the folder of the run."""
        import submitit

        return submitit.helpers.DelayedSubmission(self, task, token)


@contextmanager
def _stopped_by(request: StopRequest, number: int) -> Iterator[None]:
    """Stop a test at once when the signal comes: it has nothing to save."""
    before = signal.getsignal(number)

    def stop(number: int, frame: Any) -> None:
        request.signal = number
        raise StoppedError(request.reason(0))

    signal.signal(number, stop)
    try:
        if request.signal == number:
            raise StoppedError(request.reason(0))
        yield
    finally:
        signal.signal(number, before)
