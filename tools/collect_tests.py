"""Collect the results of `liere eval` for several runs: one row per encoding, augmentation and test condition.

    python tools/collect_tests.py RUN ... --json results/attention_scale.json

Each row has the mean over seeds and the value of every seed. Runs are grouped by encoding, options, `position_shift`
and `position_noise`; tests by size, attention scale, policy and placement.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from liere.files.writing import write_atomically
from liere.runs.conditions import Condition
from liere.runs.run import Run, open_run
from liere.terminal.messages import say
from liere.terminal.text_table import text_table


def main() -> None:
    """Read the runs, print a table, and optionally write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, help="folders of tested runs")
    parser.add_argument("--json", type=Path, help="file to write the rows to")
    args = parser.parse_args()
    rows = collect([open_run(folder) for folder in args.runs])
    header = ["encoding", "shift", "noise", "test", "examples", "accuracy", "seeds"]
    for line in text_table(header, [as_texts(row) for row in rows]):
        say(line)
    if args.json:
        content = {"command": "python tools/collect_tests.py RUN ... --json FILE", "rows": rows}
        write_atomically(args.json, json.dumps(content, indent=1) + "\n")


def collect(runs: list[Run]) -> list[dict[str, Any]]:
    """Return one row per encoding, augmentation and test condition, with the accuracy of every seed."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for run in runs:
        model = run.config.model
        for record in run.evaluations("final"):
            condition = Condition.of(record)
            options = json.dumps(model.options, sort_keys=True)
            key = (model.encoding, options, model.position_shift, model.position_noise, condition)
            row = rows.setdefault(
                key,
                {
                    "encoding": model.encoding,
                    "options": model.options,
                    "position_shift": model.position_shift,
                    "position_noise": model.position_noise,
                    **condition.as_dict(),
                    "attention_scale": condition.attention_scale or model.attention_scale,
                    "examples": record["examples"],
                    "by_seed": {},
                },
            )
            row["by_seed"][str(run.config.training.seed)] = record["accuracy"]["value"]
    return [rows[key] for key in sorted(rows)]


def as_texts(row: dict[str, Any]) -> list[str]:
    """Return the cells of a row."""
    test = f"{row['size']} px, {row['attention_scale']}"
    test += "".join(f", {name} {row[name]}" for name in ("policy", "shuffle", "placement") if row.get(name))
    values = [100 * value for value in row["by_seed"].values()]
    numbers = [f"{row['position_shift']:g}", f"{row['position_noise']:g}", test, str(row["examples"])]
    return [row["encoding"], *numbers, f"{statistics.fmean(values):.1f}", " ".join(f"{value:.1f}" for value in values)]


if __name__ == "__main__":
    main()
