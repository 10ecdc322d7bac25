"""The rank of this process in a distributed run, and how the other processes exit when the first one is gone."""

from __future__ import annotations

import os
import threading
import time

__all__ = [
    "announce_first_process",
    "end_with_first_process",
    "end_with_parent",
    "is_alive",
    "is_first_process",
    "is_under_torchrun",
]

RANKS = ("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "SLURM_PROCID")
LAUNCHER = "LIERE_LAUNCHER"  # environment variable: id of the process that starts the others on its node
POLL = 0.5  # seconds between checks of the parent
WATCHER = "end-with-first-process"  # name of the thread that checks


def is_first_process(world_size: int | None = None) -> bool:
    """Return whether this process writes files and messages: the only process, or the first of a distributed run.

    Args:
        world_size: Number of processes of the run; None while its configuration is not known. A run of one process is
            its own first process, even if it is one of several tasks of SLURM, which count their ranks too.
    """
    return world_size == 1 or all(os.environ.get(name, "0") == "0" for name in RANKS)


def is_under_torchrun() -> bool:
    """Return whether `torchrun` started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def announce_first_process() -> None:
    """Store the id of this process in the environment of its future child processes, for `end_with_first_process`."""
    if os.environ.get("LOCAL_RANK", "0") == "0":
        os.environ[LAUNCHER] = str(os.getpid())


def end_with_first_process() -> None:
    """Exit soon after the process that started this one as part of a distributed run, however that process ended.

    Otherwise this process would wait for the others until a timeout of many minutes. Does nothing in other processes,
    since their parent, such as a shell, may end before them. The processes of `torchrun` all exit with it.
    """
    launcher, parent = os.environ.get(LAUNCHER, ""), os.getppid()
    if is_under_torchrun():
        _start_watching(parent)
        return
    if os.environ.get("LOCAL_RANK", "0") == "0" or not launcher.isdecimal():
        return
    if int(launcher) != parent:
        if not is_alive(int(launcher)):
            os._exit(1)  # the launcher ended while this process was starting
    else:
        _start_watching(parent)


def end_with_parent(parent: int) -> None:
    """Exit soon after the process that started this one, which passes its own id because it may end at any time."""
    _start_watching(parent)


def is_alive(pid: int) -> bool:
    """Return whether a process is running; True if that cannot be determined."""
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[:1] != [b"Z"]  # a zombie: ended, but not yet reaped
    except (ProcessLookupError, OverflowError):  # no process has such a large number
        return False
    except OSError:  # the process of another user, or a system without /proc
        return True


def _start_watching(parent: int) -> None:
    if all(thread.name != WATCHER for thread in threading.enumerate()):
        threading.Thread(target=_watch, args=(parent,), daemon=True, name=WATCHER).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL)
    os._exit(1)  # even if the main thread is blocked
