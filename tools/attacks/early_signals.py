"""Attack: signals at any moment after a program starts, including twice."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tools.attacks.arena import Arena
from tools.attacks.contract import Attack, Verdict
from tools.attacks.runs import write_config
from tools.attacks.signals import LONG, RARE, WAYS, catches, send, signal_losses, started_on

__all__ = ["ATTACK"]


def prepare(arena: Arena, folder: Path) -> Callable[[random.Random, int], Verdict]:
    """Measure how long a program takes to reach its first steps, and return the function that tries a case."""
    config = write_config(folder, LONG)
    start = time.monotonic()
    arena.launch("train", "--config", config, "--out", folder / "first", "--steps", "8").wait()
    life = time.monotonic() - start

    def try_case(chance: random.Random, number: int) -> Verdict:
        (way, which), workers, is_twice = WAYS[number % len(WAYS)], number % 3, chance.random() < 0.3
        run, moment = folder / f"signalled-{number}", chance.uniform(0, 1.3 * life)
        fields = ["--hardware.workers", str(workers), *(RARE if chance.random() < 0.5 else ())]
        words = ["train", "--config", config, "--out", run, *fields]
        with started_on(way) as terminal:
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
        outcome = replace(outcome, output=command.output())
        is_silent = way == "terminal" and which == signal.SIGHUP
        losses, what = signal_losses(outcome, which, run, must_save=not is_twice, is_silent=is_silent)
        again = words if what == "nothing to save" else ["train", "--resume", run]
        if not losses:
            losses = [f"resumed: {loss}" for loss in arena.run(*again, "--steps", "2").losses(0)]
        shutil.rmtree(run, ignore_errors=True)
        name, times = signal.Signals(which).name, " twice" if is_twice else ""
        return Verdict(f"{name}{times} to the {way} {moment:.1f} s after its start, {workers} workers: {what}", losses)

    return try_case


ATTACK = Attack(
    "early-signals",
    "send signals to a program that is starting: it saves or reports that there is nothing to save, and can be resumed",
    1.5,
    prepare,
)
