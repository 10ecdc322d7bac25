"""Run the demo's recipe with many seeds, and check whether every seed reaches the promised accuracy.

    python tools/demo_robustness.py --seeds 0-9

Prints, for each encoding and image size, the worst, the median and the best seed, their spread, and how many seeds keep
the demo's promise. Encodings that cannot learn the task (absolute, VisionLLaMA) are run with the first three seeds.
Finished runs in --out are not repeated. Exit code 1 if a seed fails or a run is not finished.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from liere.comparison.demo import ENCODINGS, EXAMPLES, HARDWARE, RECIPE, SIZES
from liere.comparison.display import run_state
from liere.comparison.execution import run_plan
from liere.comparison.plan import Plan, make_plan
from liere.evaluation.summary import examples_to_target, plain_evaluations
from liere.files.shipped import experiments_folder
from liere.files.writing import write_atomically
from liere.machine import available_cores, machine, versions
from liere.runs.config_file import read_config
from liere.runs.encoding_names import encoding_names
from liere.runs.encoding_text import parse_encoding
from liere.runs.run import Run, open_run
from liere.terminal.messages import say
from liere.terminal.progress import ProgressLine
from liere.terminal.text_table import text_table

LEARNS = {
    "rope_mixed": {108: 0.99},
    "liere8": {108: 0.97, 168: 0.97, 276: 0.97},
    "liere": {108: 0.99, 168: 0.99, 276: 0.99},
}
"""Minimum accuracy of every seed, by encoding and image size."""
FAILS_BELOW = 0.55
"""Upper limit for encodings that cannot learn the task; counting arrows gives 0.44."""
BASELINE_SEEDS = 3


def main() -> int:
    """Train the missing runs, print the table, and optionally write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--seeds", type=seed_range, default=list(range(10)), help="for example 0-9 or 3,5 (default: 0-9)"
    )
    parser.add_argument("--encodings", nargs="+", default=list(ENCODINGS), help="(default: those of the demo)")
    parser.add_argument("--out", type=Path, default=Path("liere-robustness"), help="folder of the runs")
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    parser.add_argument("--jobs", type=int, help="processes (default: 2)")
    args = parser.parse_args()
    plan = make_the_plan(args.encodings, args.seeds, args.out, args.jobs)
    failures = run_all(plan)
    missing = [run.folder.name for run in plan.runs if not run.is_done()]
    rows = summarize([open_run(run.folder) for run in plan.runs if run.is_done()])
    for line in text_table(*as_table(rows)):
        say(line)
    promised = [row for row in rows if row["promise"]]
    passed, tried = sum(row["passed"] for row in promised), sum(len(row["by_seed"]) for row in promised)
    say(f"{passed} of {tried} promises kept" + (f"; not finished: {', '.join(missing)}" if missing else ""))
    if args.json:
        content = {
            "command": "python tools/demo_robustness.py " + " ".join(sys.argv[1:]),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "versions": versions(("torch", "lightning")),
            "recipe": read_recipe(),
            "test_examples": EXAMPLES,
            "not_finished": missing,
            "rows": rows,
        }
        write_atomically(args.json, json.dumps(content, indent=1) + "\n")
    return int(bool(failures or missing) or any(row["passed"] < len(row["by_seed"]) for row in rows))


def seed_range(text: str) -> list[int]:
    """Return the seeds in text like `0-9`, `3` or `1,4-6`."""
    seeds: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def make_the_plan(encodings: list[str], seeds: list[int], folder: Path, jobs: int | None) -> Plan:
    """Return the plan: encodings that learn the task with all seeds, the others with the first few."""
    jobs = jobs or 2
    hardware = HARDWARE | {"hardware.threads": str(max(available_cores() // jobs, 1))}
    plans = [
        make_plan(
            read_recipe(),
            hardware,
            encodings=[encoding],
            seeds=seeds if parse_encoding(encoding)[0] in LEARNS else seeds[:BASELINE_SEEDS],
            sizes=SIZES,
            examples=EXAMPLES,
            folder=folder,
            slots=jobs,
            source=RECIPE,
        )
        for encoding in encodings
    ]
    # Seed by seed, so that partial results cover all encodings.
    runs = sorted((run for plan in plans for run in plan.runs), key=lambda run: run.config.training.seed)
    return Plan(folder, runs, min(jobs, len(runs)))


def read_recipe() -> dict[str, Any]:
    """Return the demo's recipe."""
    return read_config(experiments_folder() / RECIPE)


def run_all(plan: Plan) -> list[str]:
    """Train and test the missing runs, print one line per finished run, and return the failures."""
    line, failures = ProgressLine(), list[str]()

    def ended(run: Run) -> None:
        line.clear()
        accuracies = {record["size"]: record["accuracy"]["value"] for record in plain_evaluations(run)}
        shown = " / ".join(f"{100 * accuracies[size]:.1f}" for size in SIZES)
        say(f"{run.folder.name}: {shown} %, {run.result()['seconds']:.0f} s")

    def failed(text: str) -> None:
        line.clear()
        say(text)
        failures.append(text)

    run_plan(plan, watch=lambda running: line.show("; ".join(map(run_state, running))), ended=ended, failed=failed)
    line.clear()
    return failures


def summarize(runs: list[Run]) -> list[dict[str, Any]]:
    """Return one row per encoding and image size."""
    groups: dict[str, list[Run]] = {}
    for name, run in zip(encoding_names([run.config for run in runs]), runs, strict=True):
        groups.setdefault(name, []).append(run)
    rows = []
    for name, group in groups.items():
        encoding, _ = parse_encoding(name)
        for size in SIZES:
            values = {
                run.config.training.seed: record["accuracy"]["value"]
                for run in group
                for record in plain_evaluations(run)
                if record["size"] == size
            }
            limit = LEARNS.get(encoding, {}).get(size)
            passes = [
                value >= limit if limit else encoding in LEARNS or value < FAILS_BELOW for value in values.values()
            ]
            rows.append(
                {
                    "encoding": name,
                    "options": group[0].config.model.options,
                    "size": size,
                    "worst": min(values.values()),
                    "median": statistics.median(values.values()),
                    "best": max(values.values()),
                    "promise": f">= {limit}" if limit else "" if encoding in LEARNS else f"< {FAILS_BELOW}",
                    "passed": sum(passes),
                    "by_seed": values,
                    "examples_to_95": [examples_to_target(run) for run in group],
                }
            )
    return rows


def as_table(rows: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the printed table."""
    head = ["encoding", "size", "worst", "median", "best", "spread", "promise", "seeds that pass"]
    lines = []
    for row in rows:
        numbers = [row["worst"], row["median"], row["best"], row["best"] - row["worst"]]
        passed = f"{row['passed']} of {len(row['by_seed'])}" if row["promise"] else ""
        lines.append(
            [row["encoding"], f"{row['size']} px", *(f"{100 * n:.1f}" for n in numbers), row["promise"], passed]
        )
    return head, lines


if __name__ == "__main__":
    sys.exit(main())
