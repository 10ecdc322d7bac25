"""Attack: start the same run, or several evaluations of one run, at the same time."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from tools.attacks.arena import Arena
from tools.attacks.contract import Attack, Verdict
from tools.attacks.runs import compare, finished_run, left_losses

__all__ = ["ATTACK"]

SIZES = ("36", "48", "60")


def prepare(arena: Arena, folder: Path) -> Callable[[random.Random, int], Verdict]:
    """Train an undisturbed reference run, and return the function that tries a case."""
    reference = finished_run(arena, folder)

    def start_together(chance: random.Random, number: int) -> Verdict:
        run, gaps = folder / f"run-{number}", [0.0, *(chance.uniform(0, 2) for _ in range(2))]
        commands = []
        for gap in gaps:
            time.sleep(gap)
            commands.append(arena.start("train", "--config", folder / "config.yaml", "--out", run))
        outcomes = [command.wait() for command in commands]
        losses = [loss for outcome in outcomes for loss in outcome.losses(0, 2)]
        losses += (
            compare(reference, run) if any(outcome.code == 0 for outcome in outcomes) else ["no process trained it"]
        )
        losses += [f"{path.name} was left behind" for path in folder.glob(".run-*")]
        shutil.rmtree(run, ignore_errors=True)
        return Verdict(f"{len(commands)} starts of a run, exit codes {[one.code for one in outcomes]}", losses)

    def evaluate_together(chance: random.Random, number: int) -> Verdict:
        run = folder / f"run-{number}"
        shutil.copytree(reference, run)
        # Different sizes, or one size with different numbers of examples, where the last evaluation wins.
        sizes, examples = (SIZES, ["40"] * 3) if number % 4 == 1 else (SIZES[:1] * 3, ["20", "30", "40"])
        commands = [
            arena.start("eval", run, "--sizes", size, "--examples", count)
            for size, count in zip(sizes, examples, strict=True)
        ]
        losses = [loss for command in commands for loss in command.wait().losses(0)]
        records = [] if losses else json.loads((run / "evaluation.json").read_text())
        found = sorted(str(record["size"]) for record in records)
        losses += [] if losses or found == sorted(set(sizes)) else [f"evaluation.json has the sizes {found}"]
        for record in records:
            rows = (run / record["predictions"]).read_text().count("\n") - 1
            losses += [] if rows == record["examples"] else [f"{rows} predictions, but {record['examples']} recorded"]
        losses += left_losses(run)
        shutil.rmtree(run)
        return Verdict(f"{len(commands)} evaluations of a run at {len(set(sizes))} sizes", losses)

    return lambda chance, number: (evaluate_together if number % 2 else start_together)(chance, number)


ATTACK = Attack(
    "concurrency",
    "start or evaluate a run several times at once: one process trains it, and no evaluation is lost",
    1.0,
    prepare,
)
