"""Attack training runs and data files for some minutes, and count failures.

    python tools/campaign.py --minutes 30
    python tools/campaign.py --attacks signals kills --minutes 10 --seed 3
    python tools/campaign.py --attacks signals --count 30      # each number of workers with each accumulate
    python tools/campaign.py --attacks damages --count 2000    # 2,000 damaged checkpoints, 2,000 resumes

Runs are killed at random moments and at every write; they get signals, damaged files and full disks; data files are
hostile. The expected outcome of each attack is printed first. The time is divided among the attacks; the seed
determines which cases are tried. Exit code 1 if anything was lost. Requires Linux and the development packages.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import signal
import sys
import tempfile
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.attacks import (
    concurrency,
    damages,
    data_files,
    early_signals,
    full_disk,
    kills,
    lost_workers,
    other_commands,
    run_files,
    signals,
    two_processes,
    writes,
)
from tools.attacks.arena import Arena
from tools.attacks.contract import Tally, carry_out

from liere.machine import machine, versions

__all__ = ["ATTACKS", "main"]

MODULES = (
    signals,
    damages,
    early_signals,
    two_processes,
    kills,
    writes,
    lost_workers,
    other_commands,
    run_files,
    data_files,
    full_disk,
    concurrency,
)
ATTACKS = {module.ATTACK.name: module.ATTACK for module in MODULES}


def main(arguments: list[str] | None = None) -> int:
    """Run the attacks, and print one line per case and the counts."""
    args = _parse(arguments)
    chosen = [ATTACKS[name] for name in args.attacks]
    seconds_left, shares_left = 60.0 * args.minutes, sum(attack.share for attack in chosen)
    tallies: dict[str, Tally] = {}
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that cleanup still runs
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:  # in a background job: child processes would ignore it, too
            signal.signal(number, lambda number, frame: None)
    with tempfile.TemporaryDirectory(prefix="campaign-") as name, closing(Arena(Path(name).resolve())) as arena:
        for attack in chosen:
            _say(f"{attack.name}: {attack.about}")
            seconds = seconds_left * attack.share / shares_left  # time left over by earlier attacks is divided, too
            tally = carry_out(attack, arena, seed=args.seed, seconds=seconds, count=args.count, say=_say)
            tallies[attack.name] = tally
            seconds_left, shares_left = max(seconds_left - tally.seconds, 0), shares_left - attack.share
            _say(_sentence(attack.name, tally))
    for attack_name, tally in tallies.items():
        _say(_sentence(attack_name, tally))
    if args.json is not None:
        args.json.write_text(json.dumps(_record(args, tallies), indent=1) + "\n")
    return int(any(tally.lost for tally in tallies.values()))


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--minutes", type=float, default=30, help="duration (default: 30); each attack tries at least one case"
    )
    parser.add_argument(
        "--attacks", nargs="+", choices=ATTACKS, default=list(ATTACKS), metavar="NAME", help=", ".join(ATTACKS)
    )
    parser.add_argument("--seed", type=int, default=0, help="determines which cases are tried (default: 0)")
    parser.add_argument(
        "--count", type=int, metavar="N", help="cases per attack, if time permits; damages are tried 100 at a time"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the counts to a file")
    return parser.parse_args(arguments)


def _sentence(name: str, tally: Tally) -> str:
    what = "nothing lost" if not tally.lost else f"{tally.lost} LOST"
    cases = "1 case" if tally.cases == 1 else f"{tally.cases:,} cases"
    return f"{name}: {cases} in {tally.seconds:.0f} s, {what}, at most {tally.peak_memory_mb:,} MB"


def _record(args: argparse.Namespace, tallies: dict[str, Tally]) -> dict[str, object]:
    return {
        "command": shlex.join(["python", "tools/campaign.py", *sys.argv[1:]]),
        "seed": args.seed,
        "cases": sum(tally.cases for tally in tallies.values()),
        "lost": sum(tally.lost for tally in tallies.values()),
        "peak_memory_mb": max(tally.peak_memory_mb for tally in tallies.values()),
        "attacks": {name: dataclasses.asdict(tally) for name, tally in tallies.items()},
        "machine": machine(),
        "versions": versions(("torch", "lightning")),
    }


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
