"""Signals to the process, to its group and from the terminal, at random moments from the start of the program on."""

from __future__ import annotations

import os
import pty
import random
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tools.attacks.arena import Arena, Command, Outcome
from tools.attacks.contract import Attack, Verdict
from tools.attacks.runs import CONFIG, checkpoint_losses, write_config

__all__ = ["ATTACK", "catches", "signal_losses"]

WAYS = [
    ("process", signal.SIGINT),
    ("process", signal.SIGTERM),
    ("group", signal.SIGINT),
    ("group", signal.SIGTERM),
    ("terminal", signal.SIGINT),
]
LONG = CONFIG.replace("examples: 384", "examples: 4_000_000")


class Terminal:
    """A terminal whose output goes to a file and on which keys can be pressed."""

    def __init__(self) -> None:
        self.keys, self.end = pty.openpty()

    def show(self, log: Path) -> None:
        """Begin to write what it shows to a file."""
        os.close(self.end)
        threading.Thread(target=self._copy, args=(log,), daemon=True).start()

    def _copy(self, log: Path) -> None:
        with log.open("ab", buffering=0) as file:
            while True:
                try:
                    part = os.read(self.keys, 65536)
                except OSError:  # all programs on it have ended
                    os.close(self.keys)
                    return
                file.write(part)


def catches(pid: int, number: int) -> bool:
    """Return whether a process has a handler for a signal: before, Python itself is still starting."""
    try:
        found = re.search(r"SigCgt:\s*([0-9a-f]+)", Path(f"/proc/{pid}/status").read_text())
    except FileNotFoundError:
        return False
    return found is not None and bool(int(found[1], 16) >> (number - 1) & 1)


def prepare(arena: Arena, folder: Path) -> Callable[[random.Random, int], Verdict]:
    """Measure how long a program takes to its first steps."""
    config = write_config(folder, LONG)
    start = time.monotonic()
    arena.launch("train", "--config", config, "--out", folder / "first", "--steps", "8").wait()
    life = time.monotonic() - start

    def try_case(chance: random.Random, number: int) -> Verdict:
        # Every way with every number of workers within 15 cases, with every number of parts within 45.
        (way, which), workers, parts = WAYS[number % 5], number % 3, (1, 4, 16)[(number + number // 15) % 3]
        run, is_training = folder / f"signalled-{number}", way != "terminal" and number % 2 == 1
        moment = chance.uniform(0, 2 if is_training else 1.3 * life)
        fields = ["--hardware.workers", str(workers), "--training.accumulate", str(parts)]
        words = ["train", "--config", config, "--out", run, *fields]
        terminal = Terminal() if way == "terminal" else None
        if is_training:
            command = arena.start(*words)  # spends no time on start-up
            command.wait_until(lambda: (run / "checkpoints" / "last.ckpt").exists())
        else:
            command = arena.launch(*words, terminal=terminal.end if terminal else None)
            if terminal:
                terminal.show(command.log)
            command.wait_until(lambda: catches(command.pid, signal.SIGTERM))
        time.sleep(moment)
        send(command, way, which, terminal)
        outcome = command.wait(60)
        losses, what = signal_losses(outcome, which, run)
        again = words if not (run / "checkpoints" / "last.ckpt").exists() else ["train", "--resume", run]
        if not losses:
            losses = [f"resumed: {loss}" for loss in arena.run(*again, "--steps", "2").losses(0)]
        shutil.rmtree(run, ignore_errors=True)
        name = signal.Signals(which).name
        since = "the first checkpoint" if is_training else "its start"
        return Verdict(
            f"{name} to the {way} {moment:.1f} s after {since}, {workers} workers, {parts} parts: {what}", losses
        )

    return try_case


def send(command: Command, way: str, number: int, terminal: Terminal | None) -> None:
    """Send a signal."""
    if not command.is_running():
        return
    if terminal is not None:
        os.write(terminal.keys, b"\x03")
    elif way == "group":
        os.killpg(command.pid, number)
    else:
        os.kill(command.pid, number)


def signal_losses(outcome: Outcome, number: int, run: Path) -> tuple[list[str], str]:
    """Return what is wrong with the end of a run that got a signal, and what came of it."""
    losses = outcome.losses(128 + number)
    if "nothing to save" in outcome.output:
        if run.exists() and any((run / "checkpoints").iterdir()):
            losses.append("said that there is nothing to save, but there is")
        return losses, "nothing to save"
    if "resume with: liere train --resume" not in outcome.output:
        losses.append("did not say how to resume")
    return losses or checkpoint_losses(run), "saved"


ATTACK = Attack(
    "signals",
    "a run gets Ctrl-C or SIGTERM: it saves or says that there is nothing to save, and can be resumed or started again",
    3.0,
    prepare,
)
