"""Train and evaluate the runs of a plan, several at a time, each in its own process."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from liere.comparison.local_processes import Job, Slot, run_jobs
from liere.comparison.plan import Plan
from liere.comparison.planned_run import PlannedRun
from liere.comparison.sent_encoding import SentEncoding, send_encoding
from liere.data.python import PythonData
from liere.data.torch_datasets import GivenData, find_given
from liere.files.reading import open_regular
from liere.runs.config import RunConfig
from liere.runs.run import Run, create_run, open_run

__all__ = ["run_plan"]

LOG_BYTES = 65_536  # read from the end of a log to find its last line
LOCK_PATIENCE = 30.0  # seconds; processes of a killed comparison notice it only after their next step


def run_plan(
    plan: Plan,
    *,
    watch: Callable[[list[Run]], None],
    ended: Callable[[Run], None],
    failed: Callable[[str], None],
) -> None:
    """Train and evaluate the missing runs of a plan.

    Args:
        plan: The comparison.
        watch: Called twice a second with the active runs.
        ended: Called with each finished run, starting with those that were finished before.
        failed: Called with one line of text for each failed run.
    """
    missing: dict[str, PlannedRun] = {}
    for planned in plan.runs:
        if planned.is_done():
            ended(open_run(planned.folder))
        else:
            missing[planned.folder.name] = planned
    # Longest runs first: a long run left for the end would leave other processes idle.
    order = sorted(missing.values(), key=lambda planned: -planned.operations)
    jobs = [
        Job(
            planned.folder.name,
            _train_and_evaluate,
            (planned, send_encoding(planned.config.model.encoding), _given_data(planned.config)),
            planned.log_file,
        )
        for planned in order
    ]

    def note_end(job: Job, code: int) -> None:
        if code:
            failed(f"{job.name} failed with exit code {code} ({_last_line(job.log)}): see {job.log}")
        else:
            ended(open_run(missing[job.name].folder))

    def note_progress(running: list[Job]) -> None:
        folders = [missing[job.name].folder for job in running]
        watch([open_run(folder) for folder in folders if (folder / "config.yaml").exists()])

    run_jobs(jobs, slots=plan.slots, watch=note_progress, ended=note_end)


def _given_data(config: RunConfig) -> GivenData | None:
    """Return data that was passed in from Python, to send to another process; None if the data is in files."""
    data = config.data
    return find_given(data.digest, data.description, data.examples) if isinstance(data, PythonData) else None


def _train_and_evaluate(planned: PlannedRun, encoding: SentEncoding | None, data: GivenData | None, slot: Slot) -> None:
    """Finish a run; called in its own process, where unpickling `data` makes it available."""
    if encoding is not None:
        encoding.receive()
    if torch.cuda.device_count() > 1:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        devices = visible.split(",") if visible else [str(device) for device in range(torch.cuda.device_count())]
        os.environ["CUDA_VISIBLE_DEVICES"] = devices[slot.number % len(devices)]
    from liere.evaluation.evaluate import evaluate
    from liere.training.fit import train
    from liere.training.stop_requests import StoppedError, StopRequest

    def say(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    exists = (planned.folder / "config.yaml").exists()
    # A resumed run uses the hardware and the data folder of the current call, not those it was started with.
    root = getattr(planned.config.data, "root", None)
    there = Run(planned.folder, planned.config, None if root is None else Path(root))
    run = there if exists else create_run(planned.folder, planned.config)
    try:
        train(run, say=say, request=StopRequest(parent=slot.parent), patience=LOCK_PATIENCE)
    except StoppedError as stop:
        say(f"stopped {stop}")
        sys.exit(130)
    if untested := planned.untested(run):
        with _ending_with(slot.parent):
            evaluate(run, untested, examples=planned.examples, say=say)


@contextmanager
def _ending_with(parent: Connection) -> Iterator[None]:
    """Exit immediately if the parent process ends: training handles that itself, evaluation has nothing to save."""
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(0.5):
            if parent.poll():  # the parent's end of the pipe is closed
                os._exit(1)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()


def _last_line(log: Path) -> str:
    if not log.exists():
        return "no output"
    with open_regular(log) as file:
        file.seek(max(0, log.stat().st_size - LOG_BYTES))
        lines = file.read(LOG_BYTES).decode("utf-8", errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")
