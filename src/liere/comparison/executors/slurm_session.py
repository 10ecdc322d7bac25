"""The jobs of one plan in SLURM, or in submitit's stand-in for it on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from liere.comparison.executors.contract import Ending, Session, Task
from liere.comparison.executors.slurm_job import RunJob
from liere.comparison.executors.storage import for_other_machines, place_token
from liere.comparison.sent_data import DataStore
from liere.errors import InputError
from liere.runs.config import RunConfig
from liere.terminal.messages import warn
from liere_command.signals import hold_signals

__all__ = ["SlurmSession"]

RETRIES = 3  # how often a run is submitted again after its job died
FINAL = ("CANCELLED", "DEADLINE", "OUT_OF_MEMORY", "TIMEOUT")  # states of jobs that would end the same way again
ASK_SECONDS = 30.0  # between two questions for the states of jobs
LATE_SECONDS = 20.0  # for the result of an ended job to appear on a network file system
CANCEL_SECONDS = 60.0  # for canceled jobs to save
TRIES = 8  # how often jobs are submitted, with longer and longer pauses, until SLURM answers: within about an hour


@dataclass
class _Job:
    """A submitted job.

    Attributes:
        job: The job of submitit.
        task: Its task.
        gone_since: When it was first seen to have ended without a result.
    """

    job: Any
    task: Task
    gone_since: float | None = None


class SlurmSession(Session):
    """The jobs of one plan.

    Args:
        executor: The executor of submitit.
        folder: Folder of the plan.
        slots: How many jobs run at the same time; None for all.
        parameters: Function of the configurations and of `slots` that returns the parameters of the jobs.
        is_local: Whether jobs are processes of this machine.
    """

    poll: ClassVar[float] = 1.0

    def __init__(
        self,
        executor: Any,
        folder: Path,
        slots: int | None,
        parameters: Callable[[Sequence[RunConfig], int | None], dict[str, Any]],
        *,
        is_local: bool,
    ) -> None:
        self.executor, self.folder, self.slots, self.parameters = executor, folder, slots, parameters
        self.is_local = is_local
        self.token, self.store = place_token(folder), DataStore(folder)
        self.waiting: list[Task] = []
        self.jobs: list[_Job] = []
        self.deaths: dict[str, int] = {}
        self.asked = time.monotonic()
        self.has_submitted = False
        self.refusals, self.next_try = 0, self.asked

    def submit(self, tasks: Sequence[Task]) -> None:
        """Submit tasks as one job array; on this machine alone, as many as there is room for.

        Raises:
            ValueError: If SLURM does not accept the first of them. Later, `ended` tries again.
        """
        self.waiting += for_other_machines(tasks, self.store)
        # SLURM itself keeps to the number of jobs at a time; submitit's stand-in does not.
        room = (self.slots or 1) - len(self.jobs) if self.is_local else len(self.waiting)
        now, self.waiting = self.waiting[: max(room, 0)], self.waiting[max(room, 0) :]
        if not now:
            return
        try:
            self._submit_now(now)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            reason = " ".join(str(error).split())
            if not self.has_submitted:
                raise InputError(f"SLURM does not accept the jobs ({reason}): check the options") from None
            self.waiting = now + self.waiting
            self._wait_for_slurm(reason)
        else:
            self.has_submitted, self.refusals = True, 0

    def _submit_now(self, tasks: Sequence[Task]) -> None:
        self.executor.update_parameters(**self.parameters([task.planned.config for task in tasks], self.slots))
        with hold_signals():  # `cancel` must know all jobs
            with self.executor.batch():
                jobs = [self.executor.submit(RunJob(), task, self.token) for task in tasks]
            self.jobs += [_Job(job, task) for job, task in zip(jobs, tasks, strict=True)]

    def _wait_for_slurm(self, reason: str) -> None:
        """Note that jobs could not be submitted again: others may be well, and SLURM may only be busy."""
        if not self.refusals:
            warn(f"SLURM does not accept jobs at the moment ({reason}): {len(self.waiting)} are submitted later")
        self.next_try = time.monotonic() + ASK_SECONDS * 2**self.refusals
        self.refusals += 1

    def active(self) -> list[Task]:
        """Return the tasks of all jobs; some may be waiting in the queue."""
        return [job.task for job in self.jobs]

    def ended(self) -> list[Ending]:
        """Return the tasks whose jobs have ended; tasks whose job died are submitted again."""
        if not self.is_local and self.jobs and time.monotonic() - self.asked > ASK_SECONDS:
            self.jobs[0].job.get_info(mode="force")  # asks for all jobs at once
            self.asked = time.monotonic()
        endings, again = [], []
        for job in list(self.jobs):
            if not job.job.done():
                job.gone_since = None  # requeued after a preemption: it may be late again at its end
                continue
            if self._may_be_late(job):
                continue
            self.jobs.remove(job)
            state = "" if job.job.paths.result_pickle.exists() else str(job.job.state)
            deaths = self.deaths[job.task.name] = self.deaths.get(job.task.name, 0) + bool(state)
            if state and not state.startswith(FINAL) and deaths <= RETRIES:
                again.append(job.task)
            else:
                endings.append(self._ending(job, state))
        self.waiting += again
        if time.monotonic() >= self.next_try:
            self.submit([])
        return endings + self._given_up()

    def cancel(self) -> None:
        """Cancel the jobs; those that are training save first."""
        self.waiting = []
        if self.is_local:
            for job in self.jobs:
                with suppress(ProcessLookupError):
                    os.kill(int(job.job.job_id), signal.SIGTERM)  # passed on to the process of the run
        elif self.jobs:
            subprocess.run(["scancel", *{job.job.job_id.split("_")[0] for job in self.jobs}], check=False)
        deadline = time.monotonic() + CANCEL_SECONDS
        while any(not job.job.done(force_check=True) for job in self.jobs) and time.monotonic() < deadline:
            time.sleep(self.poll)
        self.jobs = []

    def close(self) -> None:
        """Remove the token, and the data that were sent to the jobs."""
        self.token.remove()
        self.store.remove()

    def _given_up(self) -> list[Ending]:
        """Return endings of the tasks that wait to be submitted again, if that failed too often."""
        if self.refusals < TRIES:
            return []
        tasks, self.waiting, self.refusals = self.waiting, [], 0
        failure = f"because SLURM did not accept its job {TRIES} times"
        return [Ending(task.name, failure, task.log) for task in tasks]

    def _may_be_late(self, job: _Job) -> bool:
        """Return whether an ended job has no result yet, but may have one soon."""
        if self.is_local or job.job.paths.result_pickle.exists():
            return False
        job.gone_since = job.gone_since or time.monotonic()
        return time.monotonic() - job.gone_since < LATE_SECONDS

    def _ending(self, job: _Job, state: str) -> Ending:
        own_log = job.job.paths.stderr
        if state:
            hint = "" if own_log.exists() else "; no output: is the folder on storage that all machines share?"
            return Ending(job.task.name, f"because its job {job.job.job_id} ended as {state}{hint}", own_log)
        error = job.job.exception()
        if error is not None:
            return Ending(job.task.name, f"in its job {job.job.job_id}", own_log)
        code = job.job.result()
        return Ending(job.task.name, f"with exit code {code}" if code else None, job.task.log)
