"""Attack: signals to the process, to its group and from the terminal while a run is training."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from tools.attacks.arena import Arena, Command, Outcome
from tools.attacks.contract import Attack, Verdict
from tools.attacks.runs import CONFIG, checkpoint_losses, write_config
from tools.attacks.terminal import Terminal

__all__ = ["ATTACK", "LONG", "RARE", "WAYS", "catches", "logged_steps", "send", "signal_losses", "started_on"]

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
TERMINAL_AND_GROUP = (("terminal", signal.SIGINT), ("group", signal.SIGTERM))
WORKERS, PARTS = (0, 1, 2), (1, 4, 16)
CASES = [
    *((way, workers, parts) for parts in PARTS for workers in WORKERS for way in TERMINAL_AND_GROUP),
    *((way, workers, parts) for workers in WORKERS for parts in PARTS for way in WAYS),
]
"""Ways, numbers of loader workers and `accumulate`: first all of the two usual ways, then all of all ways."""


def prepare(arena: Arena, folder: Path) -> Callable[[random.Random, int], Verdict]:
    """Return the function that tries a case."""
    config = write_config(folder, LONG)

    def try_case(chance: random.Random, number: int) -> Verdict:
        (way, which), workers, parts = CASES[number % len(CASES)]
        run, moment = folder / f"signalled-{number}", chance.uniform(0, 2)
        fields = ["--hardware.workers", str(workers), "--training.accumulate", str(parts)]
        # In half of the cases only the signal saves anything, so that no other checkpoint can mask a missing one.
        fields += RARE if chance.random() < 0.5 else ()
        # As by `timeout`, which signals its child and its group. A closed terminal cannot be closed again.
        is_twice = chance.random() < 0.2 and (way, which) != ("terminal", signal.SIGHUP)
        with started_on(way) as terminal:
            command = arena.start(
                *("train", "--config", config, "--out", run, *fields), terminal=terminal.path if terminal else None
            )
            if terminal:
                terminal.show(command.log)
            command.wait_until(lambda: logged_steps(run) > 0)
            time.sleep(moment)
            send(command, way, which, terminal)
            if is_twice:
                time.sleep(chance.uniform(0, 0.05))
                send(command, way, which, terminal)
            outcome = command.wait()
        is_silent = way == "terminal" and which == signal.SIGHUP
        losses, what = signal_losses(replace(outcome, output=command.output()), which, run, is_silent=is_silent)
        losses += [] if losses or what == "saved" else [f"{what}, although it was training"]
        losses = losses or [
            f"resumed: {loss}" for loss in arena.run("train", "--resume", run, "--steps", "2").losses(0)
        ]
        shutil.rmtree(run, ignore_errors=True)
        name = "Ctrl-C" if (way, which) == TERMINAL_AND_GROUP[0] else signal.Signals(which).name
        since = f"{moment:.1f} s after the first steps"
        times = " twice" if is_twice else ""
        return Verdict(f"{name}{times} to the {way} {since}, {workers} workers, accumulate {parts}: {what}", losses)

    return try_case


@contextmanager
def started_on(way: str) -> Iterator[Terminal | None]:
    """Provide a terminal if the way needs one, and close it afterwards."""
    if way != "terminal":
        yield None
        return
    with closing(Terminal()) as terminal:
        yield terminal


def catches(pid: int, number: int) -> bool:
    """Return whether a process has a handler for a signal; before that, Python itself is still starting."""
    try:
        found = re.search(r"SigCgt:\s*([0-9a-f]+)", Path(f"/proc/{pid}/status").read_text())
    except FileNotFoundError:
        return False
    return found is not None and bool(int(found[1], 16) >> (number - 1) & 1)


def send(command: Command, way: str, number: int, terminal: Terminal | None) -> None:
    """Send a signal in one of the ways above, unless the command has ended."""
    if not command.is_running():
        return
    if terminal is not None and number == signal.SIGHUP:
        terminal.close()
    elif terminal is not None:
        terminal.press_ctrl_c()
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
    "send Ctrl-C, SIGTERM or SIGHUP to a run that is training: all its steps are saved, and it can be resumed",
    4.0,
    prepare,
)
