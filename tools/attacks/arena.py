"""Run `liere` commands as monitored processes, and check what they leave behind."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "LIMIT_MB",
    "PATIENCE",
    "Arena",
    "Command",
    "Outcome",
    "descendants",
    "is_over",
    "kill",
    "run_here",
    "write_output_to",
]

TOKEN = "LIERE_CAMPAIGN"  # environment variable: marks the processes of a campaign
LIMIT_MB = 2_000  # memory limit per process
PATIENCE = 600.0  # seconds until a command counts as hanging; it takes a few, but minutes on a busy machine
GRACE = 30.0  # seconds for child processes to end after a command; loader workers check for their parent every 5
POLL = 0.05
TROUBLE = re.compile(r"Traceback \(most recent call last\)|Exception ignored|Segmentation fault|core dumped")
PRELOADED = ("liere.cli", "liere.evaluation.evaluate", "liere.training.fit", "torch.utils.tensorboard")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a command.

    Attributes:
        code: Exit code; negative for the signal that killed it; None if it timed out and was killed.
        output: Everything it printed.
        memory_mb: Peak memory of its largest process.
    """

    code: int | None
    output: str
    memory_mb: int

    def losses(self, *codes: int) -> list[str]:
        """Return what is wrong with the outcome, given the allowed exit codes."""
        last = self.output.strip().splitlines()[-1][:300] if self.output.strip() else "nothing"
        found = []
        if self.code is None:
            found.append(f"took too long; last output {last!r}")
        elif self.code not in codes:
            found.append(f"exit code {self.code}; last output {last!r}")
        if TROUBLE.search(self.output):
            found.append(f"traceback that ends with {last!r}")
        if self.code == 2 and self.output.count("liere: error:") != 1:
            found.append(f"no one-line error: {last!r}")
        if self.memory_mb > LIMIT_MB:
            found.append(f"used {self.memory_mb:,} MB")
        return found


class Command:
    """A running command: a new program, or a fork of a process that has already imported everything."""

    def __init__(self, arena: Arena, process: Any, log: Path) -> None:
        self.arena, self.process, self.log = arena, process, log
        self.memory_mb = 0
        self.pid: int = process.pid

    def poll(self) -> int | None:
        """Return the exit code of the command, or None while it runs; also update its peak memory."""
        processes = [self.pid, *descendants(self.pid)]
        self.memory_mb = max(self.memory_mb, *map(peak_memory_mb, processes))
        self.arena.peak_memory_mb = max(self.arena.peak_memory_mb, self.memory_mb)
        if isinstance(self.process, subprocess.Popen):
            return self.process.poll()
        self.process.join(0)
        return self.process.exitcode

    def is_running(self) -> bool:
        """Return whether it is still running."""
        return self.poll() is None

    def wait(self, seconds: float = PATIENCE) -> Outcome:
        """Wait for the command to end, kill it after `seconds`, and return the outcome."""
        deadline = time.monotonic() + seconds
        while (code := self.poll()) is None and time.monotonic() < deadline:
            time.sleep(POLL)
        if code is None:
            for pid in (self.pid, *descendants(self.pid)):
                kill(pid)
            self.process.wait() if isinstance(self.process, subprocess.Popen) else self.process.join()
        return Outcome(code, self.output(), self.memory_mb)

    def wait_until(self, condition: Callable[[], bool], seconds: float = PATIENCE) -> bool:
        """Wait until a condition holds, the command ends or time runs out; return whether the condition holds."""
        deadline = time.monotonic() + seconds
        while not condition():
            if not self.is_running() or time.monotonic() > deadline:
                return condition()
            time.sleep(0.01)
        return True

    def output(self) -> str:
        """Return everything printed so far."""
        return self.log.read_text(errors="replace")


class Arena:
    """The folder and the processes of a campaign, with a canary file that must never appear."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.canary = folder / "executed"
        self.peak_memory_mb = 0
        self._commands = 0
        self._token = f"{os.getpid()}-{time.time_ns()}"
        os.environ[TOKEN] = self._token
        self._context: Any = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(list(PRELOADED))
        warm_up = self._context.Process(target=_nothing)
        warm_up.start()
        warm_up.join()
        self._helpers = set(self._marked())

    def make_folder(self, name: str) -> Path:
        """Create and return a new folder."""
        folder = self.folder / name
        folder.mkdir()
        return folder

    def start(
        self,
        *arguments: str | Path,
        before: Callable[[], None] | None = None,
        cwd: Path | None = None,
        terminal: str | None = None,
    ) -> Command:
        """Start a command as a fork of a process that has imported everything.

        Args:
            arguments: The words after `liere`.
            before: Function that it calls first.
            cwd: Its working directory.
            terminal: Path of a terminal that it runs on; None for none.
        """
        log = self._new_log()
        words = [str(argument) for argument in arguments]
        process = self._context.Process(target=run_here, args=(words, log, before, cwd, terminal))
        process.start()
        return Command(self, process, log)

    def run(self, *arguments: str | Path, seconds: float = PATIENCE, **options: Any) -> Outcome:
        """Start a command, wait for it to end, and return the outcome."""
        return self.start(*arguments, **options).wait(seconds)

    def launch(self, *arguments: str | Path, terminal: int | None = None) -> Command:
        """Start a command as users do: a new program with its own process group, optionally on a terminal."""
        log = self._new_log()
        command = [sys.executable, "-m", "liere_command", *map(str, arguments)]
        if terminal is not None:
            process = subprocess.Popen(
                command,
                stdin=terminal,
                stdout=terminal,
                stderr=terminal,
                start_new_session=True,
                preexec_fn=_own_terminal,
            )
        else:
            with log.open("w") as file:
                process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
        return Command(self, process, log)

    def find_harm(self) -> list[str]:
        """Return what the last case left behind: processes, which are killed, and traces of executed code."""
        deadline = time.monotonic() + GRACE
        while (left := self._marked() - self._helpers) and time.monotonic() < deadline:
            time.sleep(POLL)
        for pid in left:
            kill(pid)
        found = [f"processes left running: {len(left)}"] if left else []
        if self.canary.exists():
            self.canary.unlink()
            found.append("code from a file was executed")
        return found

    def close(self) -> None:
        """End all processes of the campaign."""
        for pid in self._marked():
            kill(pid)

    def _marked(self) -> set[int]:
        """Return the processes of this campaign."""
        mark = f"{TOKEN}={self._token}".encode()
        return {
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdecimal() and mark in _read(entry / "environ") and not is_over(int(entry.name))
        } - {os.getpid()}

    def _new_log(self) -> Path:
        self._commands += 1
        log = self.folder / f"command-{self._commands}.log"
        log.touch()
        return log


def run_here(
    words: list[str],
    log: Path,
    before: Callable[[], None] | None = None,
    cwd: Path | None = None,
    terminal: str | None = None,
) -> None:
    """Run a command in this process, which exits with it."""
    os.setsid()
    if terminal is None:
        write_output_to(log)
    else:
        write_output_to(Path(terminal))  # the first terminal that a session opens controls it
        os.dup2(1, 0)
    multiprocessing.set_start_method(None, force=True)  # data loaders should start workers with the default method
    if cwd is not None:
        os.chdir(cwd)
    if before is not None:
        before()
    from liere.cli import main
    from liere_command.signals import leave_on_signals

    leave_on_signals()
    sys.exit(main(words))


def write_output_to(path: Path) -> None:
    """Write the output and errors of this process to a file or a terminal from now on."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)


def descendants(pid: int) -> list[int]:
    """Return all descendants of a process."""
    children = [int(child) for child in _read(Path(f"/proc/{pid}/task/{pid}/children")).split()]
    return [*children, *(one for child in children for one in descendants(child))]


def peak_memory_mb(pid: int) -> int:
    """Return the peak memory of a process; 0 if it is gone."""
    found = re.search(rb"VmHWM:\s*(\d+) kB", _read(Path(f"/proc/{pid}/status")))
    return int(found[1]) // 1024 if found else 0


def kill(pid: int) -> None:
    """Kill a process, which may already be gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def is_over(pid: int) -> bool:
    """Return whether a process has ended, including zombies."""
    return _read(Path(f"/proc/{pid}/stat")).rpartition(b")")[2].split()[:1] in ([], [b"Z"])


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _own_terminal() -> None:
    """Make standard input the controlling terminal of this process and its group."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _nothing() -> None:
    pass
