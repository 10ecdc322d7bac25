"""Attack: a full or failing disk, by limiting file sizes or by failing writes."""

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
    """Limit the size of all files that the calling process writes."""

    size: int

    def __call__(self) -> None:
        """Set the limit."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, self.size))


@dataclass(frozen=True)
class TroubleAtWrite(AtWrite):
    """Make a write fail with a system error.

    Attributes:
        code: The error number.
    """

    code: int = errno.ENOSPC

    def act(self, descriptor: int | None) -> None:
        """Raise the error as the system would."""
        raise OSError(self.code, os.strerror(self.code))


def prepare(arena: Arena, folder: Path) -> Callable[[random.Random, int], Verdict]:
    """Train a reference run, measure its files, and return the function that tries a case."""
    reference = finished_run(arena, folder)
    largest, writes = max(path.stat().st_size for path in reference.rglob("*")), count_writes(arena, folder)

    def try_case(chance: random.Random, number: int) -> Verdict:
        run = folder / f"run-{number}"
        if number % 2:
            size = int(chance.uniform(0.02, 1.1) * largest)
            what, before = f"file size limit of {size} bytes", LimitFiles(size)
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
        return Verdict(f"{what}, then resumed without it", losses)

    return try_case


ATTACK = Attack(
    "full-disk",
    "fill or break the disk during a run: it fails with one line, keeps saved files, and resumes to the same weights",
    1.0,
    prepare,
)
