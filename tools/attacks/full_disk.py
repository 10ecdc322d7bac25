"""A disk that is full: files that cannot grow, or a system that says so at some write."""

from __future__ import annotations

import errno
import os
import random
import resource
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.attacks.arena import Arena
from tools.attacks.contract import Attack, Verdict
from tools.attacks.runs import finished_run, resume_losses
from tools.attacks.writes import AtWrite

__all__ = ["ATTACK"]


@dataclass(frozen=True)
class LimitFiles:
    """Let no file of the process that calls this grow beyond some bytes."""

    size: int

    def __call__(self) -> None:
        """Begin."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, self.size))


class FullAtWrite(AtWrite):
    """Have the disk be full at a write; it has room again afterwards."""

    def act(self, descriptor: int | None) -> None:
        """Say so, as the system does."""
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def prepare(arena: Arena, folder: Path) -> Callable[[random.Random, int], Verdict]:
    """Train a run with room, and see how large its files are."""
    reference = finished_run(arena, folder)
    largest = max(path.stat().st_size for path in reference.rglob("*"))

    def try_case(chance: random.Random, number: int) -> Verdict:
        run = folder / f"run-{number}"
        if number % 2:
            size = int(chance.uniform(0.02, 1.1) * largest)
            what, before = f"no file beyond {size} bytes", LimitFiles(size)
        else:
            write = chance.randrange(80)
            what, before = f"full at write {write + 1}", FullAtWrite(folder, write, folder.with_suffix(".txt"))
        outcome = arena.run("train", "--config", folder / "config.yaml", "--out", run, before=before)
        losses = outcome.losses(0, 2) or resume_losses(arena, run)
        what += f" (exit code {outcome.code})"
        shutil.rmtree(run, ignore_errors=True)
        return Verdict(f"{what}, then room again", losses)

    return try_case


ATTACK = Attack(
    "full-disk",
    "a run finds the disk full: it says so in one line, keeps what is saved, and resumes to the same weights",
    1.0,
    prepare,
)
