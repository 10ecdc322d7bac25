"""A disk that is full or fails: files that cannot grow, or a system that says so at some write."""

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
from tools.attacks.writes import AtWrite, count_writes

__all__ = ["ATTACK"]


@dataclass(frozen=True)
class LimitFiles:
    """Let no file of the process that calls this grow beyond some bytes."""

    size: int

    def __call__(self) -> None:
        """Begin."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, self.size))


@dataclass(frozen=True)
class TroubleAtWrite(AtWrite):
    """Have the system say at a write that it cannot be.

    Attributes:
        code: Why not.
    """

    code: int = errno.ENOSPC

    def act(self, descriptor: int | None) -> None:
        """Say so, as the system does."""
        raise OSError(self.code, os.strerror(self.code))


def prepare(arena: Arena, folder: Path) -> Callable[[random.Random, int], Verdict]:
    """Train a run with room, and see how large its files are."""
    reference = finished_run(arena, folder)
    largest, writes = max(path.stat().st_size for path in reference.rglob("*")), count_writes(arena, folder)

    def try_case(chance: random.Random, number: int) -> Verdict:
        run = folder / f"run-{number}"
        if number % 2:
            size = int(chance.uniform(0.02, 1.1) * largest)
            what, before = f"no file beyond {size} bytes", LimitFiles(size)
        else:
            write, is_lasting = chance.randrange(writes), chance.random() < 0.5
            code = chance.choice((errno.ENOSPC, errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT))
            what = f"{errno.errorcode[code]} at write {write + 1}{' and all later ones' if is_lasting else ''}"
            report = folder.with_suffix(".txt")
            before = TroubleAtWrite(folder, write, report, is_lasting=is_lasting, code=code)
        outcome = arena.run("train", "--config", folder / "config.yaml", "--out", run, before=before)
        losses = outcome.losses(0, 2) or resume_losses(arena, run)
        what += f" (exit code {outcome.code})"
        shutil.rmtree(run, ignore_errors=True)
        return Verdict(f"{what}, then all is well again", losses)

    return try_case


ATTACK = Attack(
    "full-disk",
    "a run finds the disk full or broken: it says so in one line, keeps what is saved, and resumes to the same weights",
    1.0,
    prepare,
)
