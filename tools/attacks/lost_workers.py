"""Attack: kill a data loader worker, as the system does when memory runs out."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from tools.attacks.arena import Arena, Command, descendants, kill
from tools.attacks.contract import Attack, Verdict
from tools.attacks.runs import checkpoint_losses, finished_run, left_losses
from tools.attacks.signals import LONG, logged_steps

__all__ = ["ATTACK"]

WORKERS = ("--hardware.workers", "2")


def prepare(arena: Arena, folder: Path) -> Callable[[random.Random, int], Verdict]:
    """Train an undisturbed run with workers, and return the function that tries a case."""
    finished = finished_run(arena, folder, *WORKERS)
    config = folder / "long.yaml"
    config.write_text(LONG)

    def kill_in_training(chance: random.Random, number: int) -> Verdict:
        run, moment = folder / f"run-{number}", chance.uniform(0, 1)
        command = arena.start("train", "--config", config, "--out", run, *WORKERS)
        command.wait_until(lambda: logged_steps(run) > 0)
        time.sleep(moment)
        losses = _kill_worker(command, chance) or checkpoint_losses(run)
        losses = losses or arena.run("train", "--resume", run, "--steps", "2").losses(0) or left_losses(run)
        shutil.rmtree(run, ignore_errors=True)
        return Verdict(f"a worker of a training run killed {moment:.1f} s after the first steps, resumed", losses)

    def kill_in_evaluation(chance: random.Random, number: int) -> Verdict:
        run = folder / f"run-{number}"
        shutil.copytree(finished, run)
        command = arena.start("eval", run, "--examples", "1000000")
        command.wait_until(lambda: bool(descendants(command.pid)))
        losses = _kill_worker(command, chance)
        losses = losses or arena.run("eval", run, "--examples", "20").losses(0) or left_losses(run)
        shutil.rmtree(run)
        return Verdict("a worker of an evaluation killed, evaluated again", losses)

    return lambda chance, number: (kill_in_evaluation if number % 3 == 2 else kill_in_training)(chance, number)


def _kill_worker(command: Command, chance: random.Random) -> list[str]:
    """Kill a worker, and return what is wrong with the outcome; a worker that was ending by itself has no effect."""
    deadline = time.monotonic() + 30
    while command.is_running() and time.monotonic() < deadline:
        if workers := descendants(command.pid):
            kill(chance.choice(workers))
        command.wait_until(lambda: False, seconds=1)
    outcome = command.wait(60)
    is_named = "a data loader worker" in outcome.output
    return outcome.losses(2) or ([] if is_named else [f"the worker is not mentioned: {outcome.output[-300:]!r}"])


ATTACK = Attack(
    "lost-workers",
    "kill a data loader worker: the command fails with one line, keeps what was saved, and can be repeated",
    0.7,
    prepare,
)
