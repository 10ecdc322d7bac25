"""Attack: signal or kill one or both processes of a distributed run at a random moment."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tools.attacks.arena import Arena, Command, descendants, is_over
from tools.attacks.contract import Attack, Verdict
from tools.attacks.runs import checkpoint_losses, write_config
from tools.attacks.signals import LONG, catches, signal_losses

__all__ = ["ATTACK"]

WAYS = [
    ("first", signal.SIGKILL),
    ("second", signal.SIGTERM),
    ("first", signal.SIGTERM),
    ("group", signal.SIGTERM),
    ("second", signal.SIGKILL),
    ("group", signal.SIGKILL),
    ("first, as the second starts,", signal.SIGKILL),
    ("group", signal.SIGINT),
    ("second", signal.SIGHUP),
]
SECONDS_TO_END = 30.0  # how long the second process may outlive the first
FIELDS = ("--hardware.devices", "2", "--hardware.strategy", "ddp")


def prepare(arena: Arena, folder: Path) -> Callable[[random.Random, int], Verdict]:
    """Measure how long two processes take to reach their first steps, and return the function that tries a case."""
    config = write_config(folder, LONG)
    start = time.monotonic()
    arena.launch("train", "--config", config, "--out", folder / "first", "--steps", "5", *FIELDS).wait()
    life = time.monotonic() - start

    def try_case(chance: random.Random, number: int) -> Verdict:
        who, which = WAYS[number % len(WAYS)]
        run, moment = folder / f"run-{number}", chance.uniform(0, 1.3 * life)
        words = ["train", "--config", config, "--out", run, *FIELDS]
        command = arena.launch(*words)
        command.wait_until(lambda: catches(command.pid, signal.SIGHUP))
        if "second" in who:
            command.wait_until(lambda: _second(command) is not None)
        moment = {"second": moment / 2, "first, as the second starts,": chance.uniform(0, 0.3)}.get(who, moment)
        time.sleep(moment)
        second = _second(command)
        pid = second if who == "second" else command.pid
        if who == "group":
            os.killpg(command.pid, which)
        elif pid is not None and command.is_running():
            os.kill(pid, which)
        outcome = command.wait()
        losses = _second_losses(second)
        what = "killed"
        if which != signal.SIGKILL:
            found, what = signal_losses(outcome, which, run)
            losses += found
        elif run.exists() and any((run / "checkpoints").glob("*.ckpt")):
            losses += checkpoint_losses(run)
        if not losses:
            again = ["train", "--resume", run, "--hardware.devices", "1", "--hardware.strategy", "auto"]
            outcome = arena.run(*(again if run.exists() else words[:5]), "--steps", "2")
            losses += [f"resumed: {loss}" for loss in outcome.losses(0)]
        shutil.rmtree(run, ignore_errors=True)
        return Verdict(f"{signal.Signals(which).name} to the {who} after {moment:.1f} s: {what}", losses)

    return try_case


def _second(command: Command) -> int | None:
    """Return the second process, if it has been started."""
    children = descendants(command.pid)
    return children[0] if children else None


def _second_losses(pid: int | None) -> list[str]:
    """Return a loss if the second process outlives the first by too long."""
    deadline = time.monotonic() + SECONDS_TO_END
    while pid is not None and not is_over(pid):
        if time.monotonic() > deadline:
            return [f"the second process outlived the first by {SECONDS_TO_END:.0f} s"]
        time.sleep(0.1)
    return []


ATTACK = Attack(
    "two-processes",
    "signal or kill a process of a distributed run: all processes end within seconds, and the run can be resumed",
    2.0,
    prepare,
)
