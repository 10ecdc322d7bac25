"""Attacks, their cases and their counts."""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable
from pathlib import Path

from tools.attacks.arena import Arena

__all__ = ["Attack", "Tally", "Verdict", "carry_out"]


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The result of a case.

    Attributes:
        case: What was done, in a few words.
        losses: One line for each thing that was lost or wrong; empty if none.
        count: Number of cases this stands for.
    """

    case: str
    losses: list[str]
    count: int = 1


@dataclasses.dataclass(frozen=True)
class Attack:
    """A kind of attack.

    Attributes:
        name: Its name on the command line.
        about: What it does and the expected outcome, in one sentence.
        share: Its share of the time, relative to the others.
        prepare: Called once with the arena and a folder; returns a function that tries case `number`.
        enough: Number of cases after which it ends, so that the others have more time; None for no limit.
    """

    name: str
    about: str
    share: float
    prepare: Callable[[Arena, Path], Callable[[random.Random, int], Verdict]]
    enough: int | None = None


@dataclasses.dataclass
class Tally:
    """Counts of an attack.

    Attributes:
        cases: Number of cases tried.
        lost: Number of cases that failed.
        failures: What went wrong, by case.
        seconds: Duration.
        peak_memory_mb: Peak memory of the largest process.
    """

    about: str
    cases: int = 0
    lost: int = 0
    failures: list[str] = dataclasses.field(default_factory=list)
    seconds: float = 0.0
    peak_memory_mb: int = 0


def carry_out(
    attack: Attack,
    arena: Arena,
    *,
    seed: int,
    seconds: float,
    count: int | None,
    say: Callable[[str], None],
) -> Tally:
    """Try cases of an attack, at least one, until `count` is reached or time runs out; return the counts.

    The seed determines the cases. Without a count, an attack ends when it has tried enough cases.
    """
    most = attack.enough if count is None else count
    tally, start = Tally(attack.about), time.monotonic()
    arena.peak_memory_mb = 0
    try_case = attack.prepare(arena, arena.make_folder(attack.name))
    number = 0
    while number == 0 or ((most is None or tally.cases < most) and time.monotonic() - start < seconds):
        verdict = try_case(random.Random(f"{seed}/{attack.name}/{number}"), number)
        number += 1
        losses = [*verdict.losses, *arena.find_harm()]
        tally.cases += verdict.count
        tally.lost += min(len(losses), verdict.count)
        tally.failures += [f"{verdict.case}: {loss}" for loss in losses]
        say(f"{attack.name} {number}: {verdict.case}: {'; '.join(losses) or 'ok'}")
    tally.seconds = round(time.monotonic() - start, 1)
    tally.peak_memory_mb = arena.peak_memory_mb
    return tally
