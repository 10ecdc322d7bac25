"""Attack: damage files of a run; every command must report that in one line, or work without the file."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

from tools.attacks.arena import Arena
from tools.attacks.contract import Attack, Verdict
from tools.attacks.hostile import TEXTS
from tools.attacks.mutations import damage
from tools.attacks.runs import finished_run

__all__ = ["ATTACK"]

FILES = (
    "config.yaml",
    "metrics.csv",
    "result.json",
    "evaluation.json",
    "final.safetensors",
    "best.safetensors",
    "predictions/final-test-36.csv",
    "checkpoints/last.ckpt",
)
COMMANDS = {
    "resume": ["train", "--resume", "RUN", "--steps", "1"],
    "eval": ["eval", "RUN", "--examples", "20"],
    "best": ["eval", "RUN", "--examples", "20", "--best"],
    "report": ["report", "RUN", "--out", "REPORT"],
}


def prepare(arena: Arena, folder: Path) -> Callable[[random.Random, int], Verdict]:
    """Train and test one run, stop another one halfway, and return the function that tries a case."""
    finished = finished_run(arena, folder)
    arena.run("eval", finished, "--examples", "20")
    stopped = folder / "stopped"
    arena.run("train", "--config", folder / "config.yaml", "--out", stopped, "--steps", "10")

    def try_case(chance: random.Random, number: int) -> Verdict:
        source = stopped if chance.random() < 0.3 else finished
        names = [name for name in FILES if (source / name).exists()]
        name, command = names[number % len(names)], chance.choice(list(COMMANDS))
        run, report = folder / "damaged", folder / "report"
        shutil.copytree(source, run)
        if chance.random() < 0.25:
            what, data = chance.choice(list(TEXTS.items()))
        else:
            what, data = damage((run / name).read_bytes(), chance)
        (run / name).write_bytes(data)
        words = [{"RUN": run, "REPORT": report}.get(word, word) for word in COMMANDS[command]]
        losses = arena.run(*words).losses(0, 2)
        for path in (run, report):
            shutil.rmtree(path, ignore_errors=True)
        return Verdict(f"{name} of a {source.name} run {what}, then {command}", losses)

    return try_case


ATTACK = Attack(
    "run-files",
    "damage a file of a run: commands that read it work, or fail with a one-line error",
    1.5,
    prepare,
)
