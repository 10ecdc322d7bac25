"""What an attack is, and what comes of it."""

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
    """What came of a case.

    Attributes:
        case: What was done, in a few words.
        losses: What was lost or wrong, a line each; none if all is well.
        count: How many cases this stands for.
    """

    case: str
    losses: list[str]
    count: int = 1


@dataclasses.dataclass(frozen=True)
class Attack:
    """A kind of harm.

    Attributes:
        name: What to call it.
        about: What it does and what has to come of it, in a sentence.
        share: Its part of the time, relative to the others.
        prepare: Called once, with a folder of its own; returns what does case `number`.
    """

    name: str
    about: str
    share: float
    prepare: Callable[[Arena, Path], Callable[[random.Random, int], Verdict]]


@dataclasses.dataclass
class Tally:
    """Counts of an attack.

    Attributes:
        cases: How many were tried.
        lost: How many of them went wrong.
        failures: What went wrong in which case.
        seconds: Time they took.
        peak_memory_mb: Of the largest process that they started.
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
    """Try cases of an attack, one at least, until the time is over; which ones is decided by the seed alone."""
    tally, start = Tally(attack.about), time.monotonic()
    arena.peak_memory_mb = 0
    try_case = attack.prepare(arena, arena.make_folder(attack.name))
    number = 0
    while number == 0 or (number != count and time.monotonic() - start < seconds):
        verdict = try_case(random.Random(f"{seed}/{attack.name}/{number}"), number)
        number += 1
        losses = [*verdict.losses, *arena.find_harm()]
        tally.cases += verdict.count
        tally.lost += min(len(losses), verdict.count)
        tally.failures += [f"{verdict.case}: {loss}" for loss in losses]
        say(f"{attack.name} {number}: {verdict.case}: {'; '.join(losses) or 'well'}")
    tally.seconds = round(time.monotonic() - start, 1)
    tally.peak_memory_mb = arena.peak_memory_mb
    return tally
