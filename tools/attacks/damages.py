"""Attack: damage checkpoints; every run must resume from the newest intact one, to the same end."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.attacks.arena import Arena, Outcome, is_over, write_output_to
from tools.attacks.contract import Attack, Verdict
from tools.attacks.damaged_checkpoints import damage_checkpoint
from tools.attacks.runs import compare, finished_run, left_losses

__all__ = ["ATTACK", "ResumeDamaged", "resumed_losses"]

BATCH = 100  # damaged checkpoints per case, each of them resumed to the end
ENOUGH = 2_000
PATIENCE = 120.0  # seconds until a resume, which takes less than one, counts as hanging
FINISHED, STOPPED = "uninterrupted", "stopped"
CONFIG = """\
data: {size: 36, train_examples: 40, distractor_arrows: 2, distractor_letters: 1}
model: {encoding: liere8, dim: 16, depth: 1, heads: 2, mlp_dim: 16, dropout: 0.1,
        position_shift: 1.75, position_noise: 0.3}
optimizer: {learning_rate: 2.0e-3, warmup_steps: 2, clip: 1.0, weight_decay: 0.01}
training:
  {examples: 24, batch_size: 4, validate_every: 4, validation_examples: 4, checkpoint_every: 2, log_every: 2, seed: 1}
hardware: {accelerator: cpu, threads: 1}
"""
STEPS = {"last.ckpt": 5, "previous.ckpt": 4}  # of the stopped run; the whole has 6


@dataclass(frozen=True)
class ResumeDamaged:
    """Damage the last checkpoint of a run and resume it, many times; called in a process that has imported everything.

    Each resume is a fork of that process: a process of its own, but without the seconds of imports and first calls.

    Attributes:
        folder: Folder of the finished and the stopped run.
        seeds: One seed per damage.
        report: File for one line of JSON per damage: what it was, and what was lost.
    """

    folder: Path
    seeds: list[str]
    report: Path

    def __call__(self) -> None:
        """Resume all of them."""
        from liere.cli import main

        self.report.write_text("")
        run = self._copy()
        main(["train", "--resume", str(run)])  # the first run in a process takes three times as long
        shutil.rmtree(run)
        with self.report.open("w") as report:
            for seed in self.seeds:
                what, losses = self._resume(random.Random(seed))
                report.write(json.dumps([what, losses]) + "\n")
                report.flush()

    def _copy(self) -> Path:
        return Path(shutil.copytree(self.folder / STOPPED, self.report.with_suffix(".run")))

    def _resume(self, chance: random.Random) -> tuple[str, list[str]]:
        run = self._copy()
        last = run / "checkpoints" / "last.ckpt"
        intact = last.read_bytes()
        what = damage_checkpoint(last, chance)
        is_intact = last.is_file() and last.read_bytes() == intact
        outcome = run_forked(["train", "--resume", str(run)], self.report.with_suffix(".log"))
        losses = outcome.losses(0) or resumed_losses(outcome.output, is_intact=is_intact)
        losses = losses or [*compare(self.folder / FINISHED, run), *left_losses(run)]
        shutil.rmtree(run)
        return what, losses


def resumed_losses(output: str, *, is_intact: bool) -> list[str]:
    """Return what is wrong with the messages of a resumed run whose last checkpoint may be damaged.

    A damaged file may still hold everything, for example if unused bytes were flipped. Then it may be used, and the
    weights after the last step show whether it was right. If it is not used, a warning of one line names it.
    """
    found = re.findall(r"resuming after step ([\d,]+) of", output)
    refused = [line for line in output.splitlines() if "warning:" in line and "last.ckpt" in line]
    step = STEPS["previous.ckpt" if refused else "last.ckpt"]
    losses = [] if found == [str(step)] else [f"resumed after step {', '.join(found) or 'none'}, not {step}"]
    if len(refused) > 1 or (refused and (is_intact or not refused[0].endswith("it is not used"))):
        losses.append(f"unexpected warning {refused[-1]!r}")
    return losses


def run_forked(words: list[str], log: Path, seconds: float = PATIENCE) -> Outcome:
    """Run a `liere` command in a fork of this process, and return its outcome."""
    log.write_bytes(b"")
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            write_output_to(log)
            from liere.cli import main

            code = main(words)
        except BaseException:  # an exception breaks the contract; the traceback shows it
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)  # without the cleanup of the process that this is a copy of
    deadline = time.monotonic() + seconds
    while not is_over(pid) and time.monotonic() < deadline:
        time.sleep(0.005)
    is_late = not is_over(pid)
    if is_late:
        os.kill(pid, signal.SIGKILL)
    _, status, used = os.wait4(pid, 0)
    code = None if is_late else os.waitstatus_to_exitcode(status)
    return Outcome(code, log.read_text(errors="replace"), used.ru_maxrss // 1024)


def prepare(arena: Arena, folder: Path) -> Callable[[random.Random, int], Verdict]:
    """Train one run to the end and one to its third checkpoint, and return the function that tries a batch."""
    finished_run(arena, folder, text=CONFIG)
    steps = str(STEPS["last.ckpt"])
    arena.run("train", "--config", folder / "config.yaml", "--out", folder / STOPPED, "--steps", steps)

    def try_batch(chance: random.Random, number: int) -> Verdict:
        seeds, jobs = [f"{chance.random()}" for _ in range(BATCH)], len(os.sched_getaffinity(0))
        reports = [folder / f"report-{job}.jsonl" for job in range(jobs)]
        batches = [ResumeDamaged(folder, seeds[job::jobs], report) for job, report in enumerate(reports)]
        commands = [arena.start("--version", before=batch) for batch in batches]
        losses = [loss for command in commands for loss in command.wait().losses(0)]
        lines = [json.loads(line) for report in reports for line in report.read_text().splitlines()]
        losses += [f"{what}: {loss}" for what, found in lines for loss in found]
        losses += [] if len(lines) == BATCH else [f"{len(lines)} of {BATCH} resumes"]
        return Verdict(f"last.ckpt damaged {BATCH} times, and resumed each time", losses, BATCH)

    return try_batch


ATTACK = Attack(
    "damages",
    "damage last.ckpt and resume: the damage is reported in one line, and the run resumes from the newest intact "
    "checkpoint to the same weights",
    8.0,
    prepare,
    enough=ENOUGH,
)
