"""A lease on a run: one process at a time works on it, also when several machines share its folder.

A holder shows that it is alive by changing its file every few seconds. Processes of the same machine see at once that a
holder has ended. Other machines wait until its file has not changed for a minute by their own clock: the clocks of two
machines are never compared. A holder that was only paused finds that it has been succeeded before it writes again.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from liere.errors import InputError, UserError
from liere.runs.lease_files import LeaseFiles, LeaseState
from liere.runs.lease_holder import Holder, this_process

__all__ = ["Lease", "LostRunError", "acquire_lease"]

HEARTBEAT = 10.0  # seconds between two changes of the file
SILENCE = 60.0  # seconds without a change after which another machine counts as dead
POLL = 0.2  # seconds between two looks at a lease of the same machine
SLOW_POLL = 2.0  # seconds between two looks at one of another machine


class LostRunError(UserError, RuntimeError):
    """Raised when another process has taken over the run while this one was paused or cut off from its folder."""


class Lease:
    """The right of this process to change a run; see `acquire_lease`.

    Args:
        files: The lease files of the run.
        number: Number of this lease.
        holder: This process.
        since: When the claim was made, by `clock`.
        clock: A clock that also runs while the process is paused.
    """

    def __init__(
        self, files: LeaseFiles, number: int, holder: Holder, since: float, clock: Callable[[], float]
    ) -> None:
        self.files, self.number, self.holder, self.clock = files, number, holder, clock
        self.renewed, self.count, self.is_lost = since, 0, False
        self._lock, self._is_over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True, name="lease-heartbeat")

    def start(self) -> None:
        """Start the heartbeat."""
        self._thread.start()

    def renew(self) -> bool:
        """Show that this process is alive; return False if another process has taken over.

        The order matters: a successor creates its file and then looks for a sign of life. Whichever comes first, one of
        the two sees the other and withdraws.
        """
        with self._lock:
            now = self.clock()
            self.count += 1
            self.files.beat(self.number, self.count)
            self.is_lost = self.is_lost or not self._is_newest()
            if not self.is_lost:
                self.renewed = now
            return not self.is_lost

    def _is_newest(self) -> bool:
        for number in self.files.numbers():
            state = self.files.read(number)
            if number == self.number:
                return state is not None and state.holder == self.holder
            if state is None or not state.is_withdrawn:
                return False
        return False

    def confirm(self, *, is_brief: bool = False) -> None:
        """Raise if another process has taken over; call it right before something is written.

        Args:
            is_brief: Whether to ask the file system only if the last heartbeat was a while ago.

        Raises:
            LostRunError: If another process has taken over.
            OSError: If the folder cannot be read.
        """
        if is_brief and not self.is_lost and self.clock() - self.renewed < SILENCE / 2:
            return
        if self.is_lost or not self.renew():
            state = self.files.read(max(self.files.numbers(), default=0))
            who = f" by process {state.holder.pid} on {state.holder.host}" if state and state.holder else ""
            raise LostRunError(
                f"run {self.files.folder} was taken over{who} while this process was paused or cut off: it stops here "
                "without writing anything, and the other one carries on"
            )

    def release(self) -> None:
        """Stop the heartbeat, and let the next process have the run at once."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()
        if not self.is_lost:
            with contextlib.suppress(OSError):  # others then wait until it counts as dead
                self.files.release(self.number)

    def _keep(self) -> None:
        while not self._is_over.wait(HEARTBEAT):
            with contextlib.suppress(OSError):  # a network file system may be away for a while
                if not self.renew():
                    return


def acquire_lease(
    folder: Path,
    patience: float = 0,
    *,
    files: LeaseFiles | None = None,
    clock: Callable[[], float] | None = None,
    sleep: Callable[[float], object] = time.sleep,
    process: Callable[[], Holder] = this_process,
    check: Callable[[], object] | None = None,
) -> Lease:
    """Wait until no other process works on a run, and return a lease on it, whose heartbeat is still to be started.

    Args:
        folder: The folder of the run.
        patience: Seconds to wait for a process that is alive. If it is positive, and the holder is on another machine,
            also waits as long as it takes to find out whether that one is alive.
        files: The lease files; those in `folder` by default.
        clock: A clock that also runs while the process is paused.
        sleep: Function that waits for some seconds.
        process: Function that returns the process that wants the run.
        check: Called while waiting; whatever it raises ends the waiting. None for nothing.

    Raises:
        ValueError: If another process has it for longer than that.
        OSError: If the folder cannot be written.
    """
    files, clock, holder = files or LeaseFiles(folder), clock or _clock, process()
    begin, watch = clock(), _Watch()
    while True:
        since = clock()
        view = _look(files, watch, since)
        if view is None:
            continue  # somebody has just removed files
        if view.busy is None:
            if files.claim(view.newest + 1, holder):
                lease = Lease(files, view.newest + 1, holder, since, clock)
                if _uphold(lease, view):
                    return lease
            continue
        other = view.busy.holder
        is_here = other is not None and other.is_here
        is_unknown = not is_here and not watch.was_alive
        if clock() - begin >= (max(patience, SILENCE + HEARTBEAT) if is_unknown and patience > 0 else patience):
            where = "" if is_here or other is None else f" on {other.host}"
            raise InputError(f"run {folder} is in use by another process{where}: wait for it or stop it")
        if check is not None:
            check()
        sleep(POLL if is_here else min(SLOW_POLL, SILENCE / 10))


@dataclass(frozen=True)
class _View:
    """The lease files as a process that wants the run sees them.

    Attributes:
        newest: The highest number in use; 0 if there is none.
        busy: The lease to wait for; None if the run can be claimed.
        silent: Contents of the files, by number, that count as abandoned only because they have not changed.
    """

    newest: int
    busy: LeaseState | None
    silent: dict[int, bytes]


def _look(files: LeaseFiles, watch: _Watch, now: float) -> _View | None:
    """Look at the newest lease, and at those before it as long as newer ones are claims that came to nothing."""
    numbers, silent = files.numbers(), dict[int, bytes]()
    newest = max(numbers, default=0)
    for number in numbers:
        state = files.read(number)
        if state is None:
            return None
        if state.is_withdrawn:
            continue
        if not state.has_ended():
            if not watch.is_silent(number, state, now):
                return _View(newest, state, silent)
            silent[number] = state.content
        if not state.is_claim:
            break
    return _View(newest, None, silent)


def _uphold(lease: Lease, view: _View) -> bool:
    """Make a claim count, unless another process has shown a sign of life since; then withdraw the claim."""
    files, number = lease.files, lease.number
    states = {one: files.read(one) for one in view.silent}
    if all(state is not None and state.content == view.silent[one] for one, state in states.items()) and lease.renew():
        files.remove_older(number)
        return True
    files.withdraw(number)
    return False


class _Watch:
    """How long the leases of other machines have not changed, by the clock of this one."""

    def __init__(self) -> None:
        self.seen: dict[int, tuple[bytes | None, float]] = {}
        self.was_alive = False

    def is_silent(self, number: int, state: LeaseState, now: float) -> bool:
        """Note the state of a lease; return whether its holder has been silent for so long that it counts as dead."""
        content, since = self.seen.get(number, (None, now))
        if content != state.content:
            self.was_alive = self.was_alive or content is not None
            self.seen[number] = (state.content, now)
            return False
        is_elsewhere = state.holder is None or not state.holder.is_here
        return is_elsewhere and now - since >= SILENCE


def _clock() -> float:
    """Return seconds that also count while the machine sleeps, where the system knows them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
