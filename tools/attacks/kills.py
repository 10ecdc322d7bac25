"""Attack: SIGKILL at random moments of startup, training, validation and writing."""

from __future__ import annotations

import csv
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from tools.attacks.arena import Arena, kill
from tools.attacks.contract import Attack, Verdict
from tools.attacks.runs import finished_run, resume_losses

__all__ = ["ATTACK"]


def prepare(arena: Arena, folder: Path) -> Callable[[random.Random, int], Verdict]:
    """Train and time an undisturbed reference run, and return the function that tries a case."""
    workers = ("--hardware.workers", "2")
    start = time.monotonic()
    finished_run(arena, folder, *workers)
    life = time.monotonic() - start

    def try_case(chance: random.Random, number: int) -> Verdict:
        run, moment, losses = folder / f"killed-{number}", chance.uniform(0, life), list[str]()
        command = arena.start("train", "--config", folder / "config.yaml", "--out", run, *workers)
        time.sleep(moment)
        kill(command.pid)
        command.wait()
        at = where(run)
        losses += resume_losses(arena, run, *workers)
        shutil.rmtree(run, ignore_errors=True)
        return Verdict(f"killed after {moment:.1f} s ({at}) and resumed", losses)

    return try_case


def where(run: Path) -> str:
    """Return how far a killed run got."""
    if not run.exists():
        return "starting up"
    if (run / "result.json").exists():
        return "finished"
    log = run / "metrics.csv"
    rows = list(csv.DictReader(log.read_text().splitlines())) if log.exists() else []
    return f"after step {rows[-1]['step']}" if rows else "before the first line of the log"


ATTACK = Attack(
    "kills",
    "kill a run at a random moment and resume it: it finishes bit-for-bit identical to an uninterrupted one",
    2.0,
    prepare,
)
