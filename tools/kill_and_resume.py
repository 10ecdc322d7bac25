"""Kill training runs with SIGKILL at random moments, resume them, and compare what they end with, bit by bit.

    python tools/kill_and_resume.py --kills 20

The moments are uniform over the whole life of an uninterrupted run: start-up, training, validation and writing of
checkpoints included. Dropout, random positions, accumulation and loader workers are on. Exit code 1 if any run
ends differently.
"""

from __future__ import annotations

import argparse
import csv
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CONFIG = """\
data: {size: 60, distractor_arrows: 3, distractor_letters: 2}
model: {encoding: liere8, dim: 32, depth: 2, heads: 2, mlp_dim: 64, dropout: 0.1, attn_dropout: 0.1, drop_path: 0.1,
        position_shift: 1.75, position_stretch: 1.2, position_zoom: 1.2, position_noise: 0.3}
optimizer: {learning_rate: 2.0e-3, generator_learning_rate: 1.0e-3, warmup_steps: 5, clip: 1.0, weight_decay: 0.01}
training:
  {examples: 5120, batch_size: 32, accumulate: 2, validate_every: 20, validation_examples: 200, checkpoint_every: 3,
   log_every: 7, seed: 1}
hardware: {accelerator: cpu, threads: 1, workers: 2}
"""
SAME_BYTES = ("config.yaml", "final.safetensors", "best.safetensors")


def main() -> int:
    """Run the trials, print a line for each and the count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="how many runs to kill (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the moments (default: 0)")
    args = parser.parse_args()
    moments = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.yaml").write_text(CONFIG)
        start = time.monotonic()
        finish(begin(folder, "uninterrupted"))
        life = time.monotonic() - start
        print(f"an uninterrupted run takes {life:.1f} s", flush=True)
        equal = sum(trial(folder, number, moments.uniform(0, life)) for number in range(1, args.kills + 1))
    print(f"{equal} of {args.kills} killed and resumed runs ended bitwise equal to the uninterrupted one")
    return int(equal < args.kills)


def trial(folder: Path, number: int, moment: float) -> bool:
    """Kill a run at a moment, resume it to its end, and say whether it came out the same."""
    process = begin(folder, f"killed-{number}", stderr=subprocess.DEVNULL)  # loader workers complain of its death
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    process.wait()
    run = folder / f"killed-{number}"
    at = where(run)
    # Killed before its folder was there, a run has to be begun; otherwise its folder is all that resuming needs.
    finish(begin(folder, run.name) if not run.exists() else liere("train", "--resume", run))
    differences = compare(folder / "uninterrupted", run)
    shutil.rmtree(run)
    print(f"kill {number:2} after {moment:5.1f} s ({at}): {', '.join(differences) or 'equal'}", flush=True)
    return not differences


def compare(one: Path, other: Path) -> list[str]:
    """Return what differs between two finished runs, times aside."""
    import torch

    different = [name for name in SAME_BYTES if (one / name).read_bytes() != (other / name).read_bytes()]
    rows = [
        [{**row, "seconds": ""} for row in csv.DictReader((run / "metrics.csv").read_text().splitlines())]
        for run in (one, other)
    ]
    different += ["metrics.csv"] if rows[0] != rows[1] else []
    states = [
        torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)["optimizer"]["state"] for run in (one, other)
    ]
    same = states[0].keys() == states[1].keys() and all(
        torch.equal(state[key], states[1][index][key]) for index, state in states[0].items() for key in state
    )
    return different + ([] if same else ["the optimiser's averages"])


def where(run: Path) -> str:
    """Say how far a killed run was."""
    if not run.exists():
        return "starting up"
    if (run / "result.json").exists():
        return "finished"
    log = run / "metrics.csv"
    rows = list(csv.DictReader(log.read_text().splitlines())) if log.exists() else []
    return f"after step {rows[-1]['step']}" if rows else "before the first line of the log"


def begin(folder: Path, name: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start a new run."""
    return liere("train", "--config", folder / "config.yaml", "--out", folder / name, **options)


def liere(*arguments: str | Path, **options: Any) -> subprocess.Popen[bytes]:
    """Start a command."""
    command = [sys.executable, "-m", "liere.cli", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, **options)


def finish(process: subprocess.Popen[bytes]) -> None:
    """Wait for a command that must succeed."""
    if process.wait():
        raise SystemExit(f"{process.args} ended with exit code {process.returncode}")


if __name__ == "__main__":
    sys.exit(main())
