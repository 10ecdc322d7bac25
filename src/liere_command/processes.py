"""Which of a distributed run's processes this is, and how the others end when the first one is gone."""

from __future__ import annotations

import os
import threading
import time

__all__ = ["announce_first_process", "end_with_first_process", "is_alive", "is_first_process"]

RANKS = ("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "SLURM_PROCID")
LAUNCHER = "LIERE_LAUNCHER"  # environment: the process that starts the others of its node
POLL = 0.5  # seconds between looks at the parent
WATCHER = "end-with-first-process"  # name of the thread that looks


def is_first_process() -> bool:
    """Return whether this process writes files and talks: the one that was started by hand, or the first of them."""
    return all(os.environ.get(name, "0") == "0" for name in RANKS)


def announce_first_process() -> None:
    """Let the processes that this one will start know it, for `end_with_first_process`."""
    if os.environ.get("LOCAL_RANK", "0") == "0":
        os.environ[LAUNCHER] = str(os.getpid())


def end_with_first_process() -> None:
    """End this process soon after the one that started it as a part of a distributed run, however that one ended.

    Otherwise it would wait for the others until a timeout of many minutes. Does nothing in other processes, whose
    parent may well end before them: a shell, say.
    """
    launcher, parent = os.environ.get(LAUNCHER, ""), os.getppid()
    if os.environ.get("LOCAL_RANK", "0") == "0" or not launcher.isdecimal():
        return
    if int(launcher) != parent:
        if not is_alive(int(launcher)):
            os._exit(1)  # it ended while this one was starting
    elif all(thread.name != WATCHER for thread in threading.enumerate()):
        threading.Thread(target=_watch, args=(parent,), daemon=True, name=WATCHER).start()


def is_alive(pid: int) -> bool:
    """Return whether a process has not ended; True where that cannot be told."""
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[:1] != [b"Z"]  # ended, but its parent has not noticed
    except ProcessLookupError:
        return False
    except OSError:  # of another user, or without /proc
        return True


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL)
    os._exit(1)  # whatever the main thread is waiting for
