"""Train and evaluate the runs of a plan, several at a time, wherever its executor executes them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from liere.comparison.executors.contract import Task
from liere.comparison.plan import Plan
from liere.comparison.planned_run import PlannedRun
from liere.comparison.sent_data import given_data
from liere.comparison.sent_encoding import send_encoding
from liere.files.reading import open_regular
from liere.runs.locking import is_locked
from liere.runs.run import Run, open_run
from liere_command.signals import interrupt_on_signals

__all__ = ["run_plan"]

LOG_BYTES = 65_536  # read from the end of a log to find its last line
LATE_SECONDS = 60.0  # for the files of a finished run to appear on a network file system


def run_plan(
    plan: Plan,
    *,
    watch: Callable[[list[Run]], None],
    ended: Callable[[Run], None],
    failed: Callable[[str], None],
) -> None:
    """Train and evaluate the missing runs of a plan; if interrupted, ask the active ones to save and stop.

    Ctrl-C, SIGTERM and SIGHUP interrupt it.

    Args:
        plan: The comparison.
        watch: Called every moment with the active runs.
        ended: Called with each finished run, starting with those that were finished before.
        failed: Called with one line of text for each failed run.

    Raises:
        UserError: If the executor cannot execute runs, for example because machines do not share the folder.
        ImportError: If a package is missing.
        KeyboardInterrupt: If it was interrupted; after SIGTERM and SIGHUP a `SignalInterrupt`.
    """
    missing: dict[str, PlannedRun] = {}
    for planned in plan.runs:
        if planned.is_done():
            ended(open_run(planned.folder))
        else:
            missing[planned.folder.name] = planned
    if not missing:
        return
    # Longest runs first: a long run left for the end would leave other processes idle.
    order = sorted(missing.values(), key=lambda planned: -planned.operations)
    tasks = [Task(one, send_encoding(one.config.model.encoding), given_data(one.config)) for one in order]
    opened: dict[str, Run] = {}  # reading configurations twice a second would take a tenth of a core
    # Handlers are set afterwards, because connecting to a cluster may set others.
    with plan.executor.open(plan.folder, plan.slots) as session, interrupt_on_signals():
        session.submit(tasks)
        left = {task.name for task in tasks}
        while left:
            active = [task for task in session.active() if _is_active(task)]
            opened |= {task.name: open_run(task.planned.folder) for task in active if task.name not in opened}
            watch([opened[task.name] for task in active])
            time.sleep(session.poll)
            for ending in session.ended():
                left.remove(ending.name)
                planned = missing[ending.name]
                if ending.failure is None and _appears(planned):
                    ended(open_run(planned.folder))
                else:
                    reason = ending.failure or "to show its results here: is the folder on shared storage?"
                    failed(f"{ending.name} failed {reason} ({_last_line(ending.log)}): see {ending.log}")


def _is_active(task: Task) -> bool:
    """Return whether a run that was submitted has begun: others wait in a queue, or for a lock."""
    folder = task.planned.folder
    return (folder / "config.yaml").exists() and (is_locked(folder) or (folder / "result.json").exists())


def _appears(planned: PlannedRun) -> bool:
    """Return whether a run is done, after waiting for its files for a while."""
    deadline = time.monotonic() + LATE_SECONDS
    while not planned.is_done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)
    return True


def _last_line(log: Path) -> str:
    if not log.exists():
        return "no output"
    with open_regular(log) as file:
        file.seek(max(0, log.stat().st_size - LOG_BYTES))
        lines = file.read(LOG_BYTES).decode("utf-8", errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")
