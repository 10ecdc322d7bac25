"""Who works on a run: a process of a machine, recognized by other processes and other machines."""

from __future__ import annotations

import json
import os
import platform
import uuid
from dataclasses import asdict, dataclass
from functools import cache

from liere_command.processes import is_alive

__all__ = ["Holder", "this_process"]

BOOT_ID = "/proc/sys/kernel/random/boot_id"
PROCESS_NAMES = "/proc/self/ns/pid"
START_FIELD = 19  # of /proc/PID/stat, counted after the name of the program


@dataclass(frozen=True)
class Holder:
    """A process that works on a run.

    Attributes:
        host: Name of its machine, for messages.
        machine: What tells machines apart: two processes with the same value can see each other's process ids.
        pid: Its process id.
        start: When it started, which tells apart processes that had the same id; empty if unknown.
        token: A random text that tells apart two leases of one process.
    """

    host: str
    machine: str
    pid: int
    start: str
    token: str

    def as_text(self) -> str:
        """Return it as one line of text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Holder | None:
        """Return the holder that a line describes; None if the line is damaged."""
        try:
            fields = json.loads(text)
            holder = cls(**fields)
        except (ValueError, TypeError, RecursionError):
            return None
        texts = (holder.host, holder.machine, holder.start, holder.token)
        is_sound = all(isinstance(value, str) for value in texts) and type(holder.pid) is int and holder.pid > 0
        return holder if is_sound else None

    @property
    def is_here(self) -> bool:
        """Whether it is a process of this machine."""
        return self.machine == _this_machine()

    def has_ended(self) -> bool:
        """Return whether it is known to have ended, which only a process of the same machine can tell."""
        if not self.is_here:
            return False
        return not is_alive(self.pid) or (self.start != "" and _start_of(self.pid) not in ("", self.start))


def this_process() -> Holder:
    """Return this process as a holder, with a new token."""
    pid = os.getpid()
    return Holder(platform.node(), _this_machine(), pid, _start_of(pid), uuid.uuid4().hex)


@cache
def _this_machine() -> str:
    """Return a text that differs between machines, between boots, and between containers with process ids of their own.

    Host names are not enough: they repeat in clusters of containers.
    """
    try:
        with open(BOOT_ID, encoding="ascii") as file:
            return f"{file.read().strip()} {os.readlink(PROCESS_NAMES)}"
    except OSError:  # not Linux
        return f"{platform.node()} {uuid.getnode():x}"


def _start_of(pid: int) -> str:
    """Return when a process started, in clock ticks since the boot; empty if unknown."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[START_FIELD].decode("ascii")
    except (OSError, IndexError, ValueError):
        return ""
