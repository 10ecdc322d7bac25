"""The contract of executors: submit planned runs, hear of their end, cancel them.

An executor is a description of where and how runs are executed; a session is its connection while a plan is executed.
State is not passed back: it is in the folders of the runs, so that any executor resumes what another one began.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import ClassVar

from liere.comparison.planned_run import PlannedRun
from liere.comparison.sent_data import SentData
from liere.comparison.sent_encoding import SentEncoding
from liere.data.torch_datasets import GivenData
from liere.runs.config import RunConfig

__all__ = ["Ending", "Executor", "Session", "Task"]


@dataclass(frozen=True)
class Task:
    """A planned run, with what its process needs to know.

    Attributes:
        planned: The run.
        encoding: A user-defined encoding, for processes in which it is not defined; None for built-in encodings.
        data: Data passed from Python, or the file that contains them; None if the data are in files.
        cwd: Working folder, to which relative paths refer; None for that of the process.
        paths: Folders from which modules can be imported.
    """

    planned: PlannedRun
    encoding: SentEncoding | None = None
    data: GivenData | SentData | None = None
    cwd: Path | None = None
    paths: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.planned.folder.name

    @property
    def log(self) -> Path:
        """File to which the output of its process is appended."""
        return self.planned.log_file


@dataclass(frozen=True)
class Ending:
    """How a task ended.

    Attributes:
        name: Name of the run.
        failure: None if the run is trained and tested; otherwise the end of a sentence, such as "with exit code 1".
        log: File with its output.
    """

    name: str
    failure: str | None
    log: Path


class Session(abc.ABC):
    """A connection to whatever executes the tasks of one plan; a context manager.

    Attributes:
        poll: Seconds between two questions for ended tasks.
    """

    poll: ClassVar[float] = 0.5

    @abc.abstractmethod
    def submit(self, tasks: Sequence[Task]) -> None:
        """Queue tasks, which are started in this order."""

    @abc.abstractmethod
    def active(self) -> list[Task]:
        """Return the tasks that have not ended, without those that are known to be waiting."""

    @abc.abstractmethod
    def ended(self) -> list[Ending]:
        """Return the tasks that have ended since the last call; does not wait."""

    @abc.abstractmethod
    def cancel(self) -> None:
        """Ask all active tasks to save and stop, wait for that, and forget those that have not begun."""

    @abc.abstractmethod
    def close(self) -> None:
        """Disconnect."""

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.cancel()
        finally:
            self.close()


class Executor(abc.ABC):
    """Where and how runs are executed.

    Attributes:
        name: Name on the command line.
        is_here: Whether runs are executed on this machine, so that its hardware can be checked beforehand.
    """

    name: ClassVar[str]
    is_here: ClassVar[bool] = False

    @abc.abstractmethod
    def slots(self, config: RunConfig, jobs: int | None, runs: int) -> int | None:
        """Return how many runs are executed at the same time; None for as many as possible.

        Args:
            config: Configuration of one of the runs.
            jobs: The number that the user asked for; None for the default.
            runs: Number of runs.
        """

    @abc.abstractmethod
    def threads(self, config: RunConfig, slots: int | None) -> int:
        """Return the number of threads of a run that does not specify it."""

    def check(self, folder: Path) -> None:  # noqa: B027  (not every executor needs something)
        """Check whatever can be checked before the folder of a plan is created.

        Args:
            folder: Folder of the plan.

        Raises:
            UserError: If runs cannot be executed from this machine in this folder.
            ImportError: If a package is missing.
        """

    @abc.abstractmethod
    def open(self, folder: Path, slots: int | None) -> Session:
        """Connect, and check that runs can be executed in a folder.

        Args:
            folder: Folder of the plan.
            slots: How many runs are executed at the same time; None for as many as possible.

        Raises:
            UserError: If a machine does not see the folder, or an option is wrong.
            ImportError: If a package is missing.
        """

    @abc.abstractmethod
    def describe(self, folder: Path, configs: Sequence[RunConfig], slots: int | None) -> list[str]:
        """Return lines that tell how runs would be executed, for a dry run."""
