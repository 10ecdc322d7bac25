"""Execute runs as tasks of a Ray cluster: one task per run, with the run's CPUs and GPUs as resources."""

from __future__ import annotations

import logging
import os
import platform
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from liere.comparison.executors.contract import Ending, Executor, Session, Task
from liere.comparison.executors.ray_address import check_answers, check_form, unreachable
from liere.comparison.executors.resources import Resources, alone, resources_of, threads_of
from liere.comparison.executors.storage import StorageToken, for_other_machines, not_shared, place_token
from liere.comparison.executors.work import work
from liere.comparison.sent_data import DataStore
from liere.errors import InputError
from liere.optional.extras import require
from liere.runs.config import RunConfig
from liere.terminal.messages import warn
from liere.training.stop_requests import StopRequest
from liere.version import __version__

__all__ = ["RayExecutor", "RaySession"]

PROBE_SECONDS = 300.0  # for a machine to start a process, import torch and look at the folder
CANCEL_SECONDS = 120.0  # for a run to finish its step and save


@dataclass(frozen=True)
class RayExecutor(Executor):
    """Execute each run as a task of a Ray cluster.

    Attributes:
        address: Address of the cluster: `"auto"` for the one that this machine belongs to, `HOST:PORT`, or `"local"` to
            start Ray on this machine alone. If Ray is already initialized in this process, that cluster is used.
        gpus_per_run: GPUs per run, also fractions; None for one if the cluster has any and the run may use it.
        cpus_per_run: CPUs per run; None for one per thread and one per worker that loads data.
        retries: How many times a run is resumed after the death of its process or machine; errors are not retried.
    """

    name: ClassVar[str] = "ray"

    address: str = "auto"
    gpus_per_run: float | None = None
    cpus_per_run: int | None = None
    retries: int = 8

    def __post_init__(self) -> None:
        check_form(self.address)

    def slots(self, config: RunConfig, jobs: int | None, runs: int) -> int | None:
        """Return how many runs are executed at the same time; without `jobs`, Ray decides by their resources."""
        return None if jobs is None else min(jobs, runs)

    def threads(self, config: RunConfig, slots: int | None) -> int:
        """Return the number of threads of a run."""
        return threads_of(config, self.cpus_per_run)

    def resources(self, config: RunConfig, *, has_gpus: bool) -> Resources:
        """Return what a run asks for."""
        return resources_of(config, cpus=self.cpus_per_run, gpus=self.gpus_per_run, has_gpus=has_gpus)

    def check(self, folder: Path) -> None:
        """Check that something answers at the address, unless this process is connected already.

        Raises:
            ImportError: If Ray is not installed.
            ValueError: If nothing answers.
        """
        require("ray")
        import ray

        if not ray.is_initialized():
            check_answers(self.address)

    def open(self, folder: Path, slots: int | None) -> RaySession:
        """Connect to the cluster, and check that all of its machines see the folder.

        Raises:
            ImportError: If Ray is not installed.
            ValueError: If there is no cluster, or a machine does not see the folder or has another version of `liere`.
        """
        require("ray")
        return RaySession(self, folder, slots)

    def describe(self, folder: Path, configs: Sequence[RunConfig], slots: int | None) -> list[str]:
        """Return lines on the tasks."""
        needs = self.resources(configs[0], has_gpus=False)
        gpu = "" if needs.gpus or configs[0].hardware.accelerator == "cpu" else ", and 1 GPU if the cluster has any"
        cap = "" if slots is None else f", at most {slots} at a time"
        return [
            f"Runs are tasks of the Ray cluster at {self.address}, with {needs}{gpu} each{cap}; all of its machines "
            f"must see {folder.absolute()}, which is checked before the first task is submitted."
        ]


class RaySession(Session):
    """A connection to a Ray cluster.

    Args:
        executor: The options.
        folder: Folder of the plan.
        slots: How many tasks are submitted at the same time; None for all.
    """

    poll: ClassVar[float] = 1.0

    def __init__(self, executor: RayExecutor, folder: Path, slots: int | None) -> None:
        import ray

        self.ray, self.executor, self.folder, self.slots = ray, executor, folder, slots
        self.store = DataStore(folder)
        self.waiting: list[Task] = []
        self.running: dict[Any, Task] = {}
        self.is_owner = not ray.is_initialized()
        if self.is_owner:
            _connect(executor.address)
        try:
            self.has_gpus = ray.cluster_resources().get("GPU", 0) > 0
            # Each run has a process of its own: `max_calls` ends it afterwards, with all that it has changed.
            self.remote = ray.remote(max_calls=1, max_retries=executor.retries, retry_exceptions=False)(_work)
            self._check_storage()
        except BaseException:
            self.close()
            raise

    def submit(self, tasks: Sequence[Task]) -> None:
        """Queue tasks, and submit as many as allowed."""
        self.waiting += for_other_machines(tasks, self.store)
        if tasks:
            self._warn_if_too_large(self._needs(tasks[0]))
        while self.waiting and (self.slots is None or len(self.running) < self.slots):
            task = self.waiting.pop(0)
            needs = self._needs(task)
            options = self.remote.options(num_cpus=needs.cpus, num_gpus=needs.gpus, name=task.name)
            self.running[options.remote(task)] = task

    def active(self) -> list[Task]:
        """Return the tasks that Ray has; some may be waiting for resources."""
        return list(self.running.values())

    def ended(self) -> list[Ending]:
        """Return the tasks that have ended, and submit others."""
        if not self.running:
            return []
        found, _ = self.ray.wait(list(self.running), num_returns=len(self.running), timeout=0)
        endings = [self._ending(reference, self.running.pop(reference)) for reference in found]
        self.submit([])
        return endings

    def cancel(self) -> None:
        """Ask the tasks to save and stop, and wait for them."""
        self.waiting = []
        references = list(self.running)
        for reference in references:
            self.ray.cancel(reference)  # like Ctrl-C in its process; without effect if it has ended
        if references:
            _, left = self.ray.wait(references, num_returns=len(references), timeout=CANCEL_SECONDS)
            for reference in left:
                self.ray.cancel(reference, force=True)
        self.running = {}

    def close(self) -> None:
        """Remove the data that were sent to the tasks; disconnect, unless this process was connected before."""
        self.store.remove()
        if self.is_owner:
            self.ray.shutdown()

    def _needs(self, task: Task) -> Resources:
        return self.executor.resources(task.planned.config, has_gpus=self.has_gpus)

    def _ending(self, reference: Any, task: Task) -> Ending:
        try:
            code = self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            failure: str | None = f"with {type(error.cause).__name__}: {error.cause}"
        except self.ray.exceptions.RayError as error:
            tries = f"{self.executor.retries + 1} times"
            failure = f"because its process or machine died {tries} ({type(error).__name__})"
        else:
            failure = f"with exit code {code}" if code else None
        return Ending(task.name, failure, task.log)

    def _machines(self) -> list[dict[str, Any]]:
        """Return the machines that can execute runs: those that are alive and offer CPUs."""
        return [node for node in self.ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) > 0]

    def _warn_if_too_large(self, needs: Resources) -> None:
        offers = [node["Resources"] for node in self._machines()]
        if not any(offer["CPU"] >= needs.cpus and offer.get("GPU", 0) >= needs.gpus for offer in offers):
            warn(f"no machine of the Ray cluster has {needs}: the runs wait until one joins")

    def _check_storage(self) -> None:
        """Raise unless all machines that may execute runs see the folder and have this version of `liere`."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        token = place_token(self.folder)
        try:
            probe = self.ray.remote(num_cpus=0, max_retries=0, max_calls=1)(_look)
            machines = self._machines()
            answers = [
                probe.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote(
                    token
                )
                for node in machines
            ]
            found, _ = self.ray.wait(answers, num_returns=len(answers), timeout=PROBE_SECONDS) if answers else ([], [])
            for node, answer in zip(machines, answers, strict=True):
                host = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
                if answer not in found:
                    raise InputError(f"the machine {host} of the Ray cluster does not answer: remove or restart it")
                try:
                    is_visible, version = self.ray.get(answer)
                except self.ray.exceptions.RayError as error:
                    reason = str(error).strip().splitlines()[-1]
                    raise InputError(
                        f"liere does not work on the machine {host} of the Ray cluster ({reason}): install it there"
                    ) from None
                if not is_visible:
                    raise InputError(not_shared(self.folder, host))
                if version != __version__:
                    raise InputError(
                        f"the machine {host} of the Ray cluster has liere {version}, but this one has {__version__}: "
                        "install the same version"
                    )
        finally:
            token.remove()


def _connect(address: str) -> None:
    """Connect to a cluster, or start one on this machine, without dashboard, statistics and messages."""
    import ray

    check_answers(address)
    options: dict[str, Any] = {}
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_worker_niceness", "0")  # runs are what this machine is there for
        options = {"include_dashboard": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on plans for later versions
        try:
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **options)
        except (ConnectionError, ValueError, RuntimeError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
            raise unreachable(address, reason) from None


def _look(token: StorageToken) -> tuple[bool, str]:
    """Return whether a machine sees the folder, and which version of `liere` it has."""
    return token.is_visible(), __version__


def _work(task: Task) -> int:
    """Train and test a run in a process of its own; Ray cancels it by raising SIGINT, which is a request to stop."""
    with alone():
        code = work(task, StopRequest())
    logging.getLogger(__name__).info("%s ended with %d on %s", task.name, code, platform.node())
    return code
