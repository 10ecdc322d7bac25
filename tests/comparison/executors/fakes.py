"""An executor that does nothing but note how it is called."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from liere.comparison.executors.contract import Ending, Executor, Session, Task

__all__ = ["FakeExecutor", "FakeSession"]


class FakeExecutor(Executor):
    """Tasks end at once, in order; those named in `failures` fail, and `make` is called with those that do not."""

    name: ClassVar[str] = "fake"

    def __init__(self, failures: dict[str, str] | None = None, make: Any = None) -> None:
        self.failures, self.make, self.calls = failures or {}, make, list[Any]()

    def slots(self, config: Any, jobs: int | None, runs: int) -> int | None:
        return jobs

    def threads(self, config: Any, slots: int | None) -> int:
        return 1

    def open(self, folder: Path, slots: int | None) -> FakeSession:
        self.calls.append(("open", folder, slots))
        return FakeSession(self)

    def describe(self, folder: Path, configs: Sequence[Any], slots: int | None) -> list[str]:
        return [f"{len(configs)} runs by a fake"]


class FakeSession(Session):
    """A session of `FakeExecutor`."""

    poll: ClassVar[float] = 0.0

    def __init__(self, executor: FakeExecutor) -> None:
        self.executor, self.tasks = executor, list[Task]()

    def submit(self, tasks: Sequence[Task]) -> None:
        self.executor.calls.append(("submit", [task.name for task in tasks]))
        self.tasks += tasks

    def active(self) -> list[Task]:
        return list(self.tasks)

    def ended(self) -> list[Ending]:
        task = self.tasks.pop(0)
        failure = self.executor.failures.get(task.name)
        if failure is None and self.executor.make is not None:
            self.executor.make(task)
        return [Ending(task.name, failure, task.log)]

    def cancel(self) -> None:
        self.executor.calls.append(("cancel", [task.name for task in self.tasks]))

    def close(self) -> None:
        self.executor.calls.append(("close",))
