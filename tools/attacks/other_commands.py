"""Attack: signals to evaluations and comparisons, which have nothing to save but processes to end."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tools.attacks.arena import Arena
from tools.attacks.contract import Attack, Verdict
from tools.attacks.runs import finished_run, left_losses
from tools.attacks.signals import catches

__all__ = ["ATTACK"]

WAYS = [
    ("group", signal.SIGINT),
    ("process", signal.SIGTERM),
    ("process", signal.SIGKILL),
    ("process", signal.SIGINT),
    ("group", signal.SIGTERM),
    ("group", signal.SIGHUP),
]


def prepare(arena: Arena, folder: Path) -> Callable[[random.Random, int], Verdict]:
    """Train an undisturbed run, and return the function that tries a case."""
    finished = finished_run(arena, folder, "--hardware.workers", "1")

    def try_case(chance: random.Random, number: int) -> Verdict:
        place, (way, which) = folder / f"case-{number}", WAYS[number // 2 % len(WAYS)]
        if number % 2:
            shutil.copytree(finished, place)
            name, moment, words = "evaluation", chance.uniform(0, 8), ["eval", place, "--examples", "20000"]
        else:
            words = ["compare", "--config", folder / "config.yaml", "--out", place, "--jobs", "2", "--seeds", "0"]
            words += ["--encodings", "absolute", "liere8", "--sizes", "36", "--examples", "20"]
            name, moment = "comparison with 2 jobs", chance.uniform(0, 16)
        command = arena.launch(*words)
        command.wait_until(lambda: catches(command.pid, signal.SIGINT))
        time.sleep(moment)
        if command.is_running():
            os.killpg(command.pid, which) if way == "group" else os.kill(command.pid, which)
        outcome = command.wait()
        losses = outcome.losses(0, 128 + which, -which)
        losses += arena.find_harm()  # waits until the jobs of a comparison have saved and ended
        again = [*words[:-1], "20"]
        losses = losses or [f"repeated: {loss}" for loss in arena.run(*again).losses(0)]
        runs = [place] if number % 2 else [config.parent for config in place.glob("**/config.yaml")]
        losses += [loss for run in runs for loss in left_losses(run)]
        shutil.rmtree(place, ignore_errors=True)
        what = f"{signal.Signals(which).name} to the {way} of a {name} after {moment:.1f} s"
        return Verdict(f"{what} (exit code {outcome.code}), repeated", losses)

    return try_case


ATTACK = Attack(
    "other-commands",
    "send signals to evaluations and comparisons: all their processes end, and the same command can be repeated",
    1.0,
    prepare,
)
