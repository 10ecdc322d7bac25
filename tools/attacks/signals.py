"""Attack: signals to the process, to its group and from the terminal, at random moments after the program starts."""

from __future__ import annotations

import os
import pty
import random
import re
import select
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
    ("group", signal.SIGHUP),
    ("terminal", signal.SIGHUP),  # the terminal is closed
]
LONG = CONFIG.replace("examples: 384", "examples: 4_000_000")
RARE = ("--training.checkpoint_every", "1_000_000", "--training.validate_every", "1_000_000")


class Terminal:
    """A pseudo-terminal that copies its output to a file, accepts key presses, and can be closed."""

    def __init__(self) -> None:
        self.keys, self.end = pty.openpty()
        self.is_closed = False

    def show(self, log: Path) -> None:
        """Start copying its output to a file."""
        os.close(self.end)
        threading.Thread(target=self._copy, args=(log,), daemon=True).start()

    def _copy(self, log: Path) -> None:
        with log.open("ab", buffering=0) as file:
            while not self.is_closed:  # a blocking read would keep it from being closed
                if select.select([self.keys], [], [], 0.05)[0]:
                    try:
                        file.write(os.read(self.keys, 65536))
                    except OSError:  # all programs on it have ended
                        break
        os.close(self.keys)

    def close(self) -> None:
        """Close it for all programs that use it."""
        self.is_closed = True


def catches(pid: int, number: int) -> bool:
    """Return whether a process has a handler for a signal; before that, Python itself is still starting."""
    try:
        found = re.search(r"SigCgt:\s*([0-9a-f]+)", Path(f"/proc/{pid}/status").read_text())
    except FileNotFoundError:
        return False
    return found is not None and bool(int(found[1], 16) >> (number - 1) & 1)


def prepare(arena: Arena, folder: Path) -> Callable[[random.Random, int], Verdict]:
    """Measure how long a program takes to reach its first steps, and return the function that tries a case."""
    config = write_config(folder, LONG)
    start = time.monotonic()
    arena.launch("train", "--config", config, "--out", folder / "first", "--steps", "8").wait()
    life = time.monotonic() - start

    def try_case(chance: random.Random, number: int) -> Verdict:
        # Covers every way with every number of workers in 21 cases, and with every number of parts in 63.
        (way, which), workers, parts = WAYS[number % 7], number % 3, (1, 4, 16)[(number + number // 21) % 3]
        run, is_twice = folder / f"signalled-{number}", chance.random() < 0.2
        is_training = way != "terminal" and number % 2 == 1 and not is_twice
        moment = chance.uniform(0, 2 if is_training else 1.3 * life)
        fields = ["--hardware.workers", str(workers), "--training.accumulate", str(parts)]
        # In half of the cases only the signal saves anything, so that no other checkpoint can mask a missing one.
        fields += RARE if chance.random() < 0.5 else ()
        words = ["train", "--config", config, "--out", run, *fields]
        terminal = Terminal() if way == "terminal" else None
        if is_training:
            command = arena.start(*words)  # starts without import time
            command.wait_until(lambda: logged_steps(run) > 0)
        else:
            command = arena.launch(*words, terminal=terminal.end if terminal else None)
            if terminal:
                terminal.show(command.log)
            command.wait_until(lambda: catches(command.pid, signal.SIGHUP))
        time.sleep(moment)
        send(command, way, which, terminal)
        if is_twice:
            time.sleep(chance.uniform(0, 0.3))
            send(command, way, which, terminal)
        outcome = command.wait()
        is_silent = way == "terminal" and which == signal.SIGHUP
        losses, what = signal_losses(outcome, which, run, must_save=not is_twice, is_silent=is_silent)
        again = words if what == "nothing to save" else ["train", "--resume", run]
        if not losses:
            losses = [f"resumed: {loss}" for loss in arena.run(*again, "--steps", "2").losses(0)]
        shutil.rmtree(run, ignore_errors=True)
        name = signal.Signals(which).name
        since = "the first steps" if is_training else "its start"
        times = " twice" if is_twice else ""
        return Verdict(
            f"{name}{times} to the {way} {moment:.1f} s after {since}, {workers} workers, {parts} parts: {what}", losses
        )

    return try_case


def send(command: Command, way: str, number: int, terminal: Terminal | None) -> None:
    """Send a signal in one of the ways above, unless the command has ended."""
    if not command.is_running():
        return
    if terminal is not None and number == signal.SIGHUP:
        terminal.close()
    elif terminal is not None:
        os.write(terminal.keys, b"\x03")
    elif way == "group":
        os.killpg(command.pid, number)
    else:
        os.kill(command.pid, number)


def logged_steps(run: Path) -> int:
    """Return how many steps a run has certainly taken, according to its log."""
    log = run / "metrics.csv"
    rows = log.read_text().splitlines()[1:] if log.exists() else []
    return max((int(row.partition(",")[0]) for row in rows if row.count(",") == 6), default=0)


def signal_losses(
    outcome: Outcome, number: int, run: Path, *, must_save: bool = True, is_silent: bool = False
) -> tuple[list[str], str]:
    """Return what is wrong after a run received a signal, and whether it was saved.

    Args:
        outcome: The outcome of the command.
        number: The signal.
        run: Folder of the run.
        must_save: Whether all steps must be saved, as after a single signal, not only those of earlier checkpoints.
        is_silent: Whether the output is unavailable.
    """
    # While Python shuts down, a second signal has its default effect; the exit code in a shell is the same.
    losses, steps = outcome.losses(128 + number, *(() if must_save else (-number,))), logged_steps(run)
    is_saved = any((run / "checkpoints").glob("*.ckpt")) or (run / "best.safetensors").exists()
    if "nothing to save" in outcome.output or (is_silent and not is_saved):
        if is_saved:
            losses.append("reported nothing to save, but there is")
        if steps and must_save:
            losses.append(f"saved nothing after {steps} steps")
        return losses, "nothing to save"
    if "resume with: liere train --resume" not in outcome.output and not is_silent:
        losses.append("did not print how to resume")
    if must_save or any((run / "checkpoints").glob("*.ckpt")):
        losses = losses or checkpoint_losses(run, steps if must_save else 0)
    return losses, "saved"


ATTACK = Attack(
    "signals",
    "send Ctrl-C, SIGTERM or SIGHUP to a run: it saves, or reports that there is nothing to save, and can be resumed",
    3.0,
    prepare,
)
