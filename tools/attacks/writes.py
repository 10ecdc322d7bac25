"""Attack: SIGKILL at every write, when a file is opened, flushed (and truncated at random), renamed or removed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.attacks.arena import Arena
from tools.attacks.contract import Attack, Verdict
from tools.attacks.runs import finished_run, left_losses, resume_losses

__all__ = ["ATTACK", "AtWrite", "count_writes", "watch_writes"]

WRITES_OF_EVALUATION = 8
EVENTS = {"os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.truncate"}


def watch_writes(folder: Path, noticed: Callable[[str, int | None], None]) -> None:
    """Call a function before this process changes anything in a folder; for a flush, with the file descriptor."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        is_write = event == "open" and len(arguments) == 3 and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if (is_write or event in EVENTS) and str(arguments[0]).startswith(f"{folder}{os.sep}"):
            noticed(f"{event.removeprefix('os.')} {Path(str(arguments[0])).name}", None)

    fsync = os.fsync

    def watched(descriptor: int) -> None:
        noticed("flush", descriptor)
        fsync(descriptor)

    sys.addaudithook(hook)
    os.fsync = watched


@dataclass(frozen=True)
class AtWrite:
    """Act at a particular write of the calling process.

    Attributes:
        folder: Folder whose writes count.
        number: Index of the write, from 0; None to only count writes.
        report: File for the number of writes, or a description of the last one.
        tear: Fraction of a flushed file that is left.
        is_lasting: Whether to act at all later writes, too.
    """

    folder: Path
    number: int | None
    report: Path
    tear: float = 1.0
    is_lasting: bool = False

    def __call__(self) -> None:
        """Start watching."""
        done = 0

        def noticed(what: str, descriptor: int | None) -> None:
            nonlocal done
            number, done = done, done + 1
            if self.number is None or number == self.number:
                self.report.write_text(f"{number + 1} {what}")
            if number == self.number or (self.is_lasting and self.number is not None and number > self.number):
                self.act(descriptor)

        watch_writes(self.folder, noticed)

    def act(self, descriptor: int | None) -> None:
        """Truncate the file and kill this process."""
        if descriptor is not None and os.path.isfile(f"/proc/self/fd/{descriptor}"):
            os.ftruncate(descriptor, int(self.tear * os.fstat(descriptor).st_size))
        os.kill(os.getpid(), signal.SIGKILL)


def count_writes(arena: Arena, folder: Path) -> int:
    """Return the number of writes of a run, given a folder with its configuration."""
    report, runs = folder.with_suffix(".txt"), folder / "runs"
    count = AtWrite(runs, None, report)
    arena.run("train", "--config", folder / "config.yaml", "--out", runs / "counted", before=count)
    shutil.rmtree(runs)
    return int(report.read_text().split()[0])


def prepare(arena: Arena, folder: Path) -> Callable[[random.Random, int], Verdict]:
    """Count the writes of an undisturbed run, and return the function that tries a case."""
    reference = finished_run(arena, folder)
    config, report, writes = folder / "config.yaml", folder.with_suffix(".txt"), count_writes(arena, folder)

    def kill_training(chance: random.Random, number: int) -> Verdict:
        # A fixed shuffled order: a long campaign covers every write once.
        run, write = folder / f"killed-{number}", random.Random(writes).sample(range(writes), writes)[number % writes]
        report.write_text("none")
        before = AtWrite(run.parent, write, report, chance.random())
        outcome = arena.run("train", "--config", config, "--out", run, before=before)
        losses = [] if outcome.code == -signal.SIGKILL else [f"was not killed: {outcome.output[-300:]!r}"]
        losses += resume_losses(arena, run)
        shutil.rmtree(run, ignore_errors=True)
        what = report.read_text().partition(" ")[2] or "not reached"
        return Verdict(f"killed at write {write + 1} of {writes} ({what}) and resumed", losses)

    def kill_evaluation(chance: random.Random, number: int) -> Verdict:
        run, write = folder / f"tested-{number}", chance.randrange(WRITES_OF_EVALUATION)
        words = ["eval", run, "--examples", "20"]
        shutil.copytree(reference, run)
        report.write_text("none")
        outcome = arena.run(*words, before=AtWrite(run, write, report, chance.random()))
        losses = [] if outcome.code in (0, -signal.SIGKILL) else [f"was not killed: {outcome.output[-300:]!r}"]
        losses += arena.run(*words).losses(0) or left_losses(run)
        if not losses:
            (record,) = json.loads((run / "evaluation.json").read_text())
            rows = (run / record["predictions"]).read_text().count("\n") - 1
            losses += (
                [] if rows == record["examples"] == 20 else [f"{rows} predictions, but {record['examples']} recorded"]
            )
        shutil.rmtree(run)
        what = report.read_text().partition(" ")[2] or "not reached"
        return Verdict(f"killed at write {write + 1} of an evaluation ({what}) and evaluated again", losses)

    # Four in five cases attack training, so that a long campaign covers each of its writes.
    return lambda chance, number: (
        kill_evaluation(chance, number) if number % 5 == 4 else kill_training(chance, number - number // 5)
    )


ATTACK = Attack(
    "writes",
    "kill a run or its evaluation at or during a write, then resume: it finishes bit-for-bit identical",
    1.5,
    prepare,
)
