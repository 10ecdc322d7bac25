"""Measure, layer by layer, how sensitive trained models are to the placement of the grid.

    python tools/placement_sensitivity.py RUN ... --json results/placement_sensitivity.json

For each run and layer: the relativity error of the generators alone, |R(x)^T R(y) - R(y - x)| / |R|, and how much the
attention of patches and of CLS changes when the grid moves (total variation, 0 to 1), which also depends on the learned
queries and keys.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from liere.data.normalization import to_float
from liere.files.writing import write_atomically
from liere.inspection.measures import inspect_model
from liere.inspection.placement_sensitivity import attention_changes
from liere.machine import machine
from liere.runs.data_of_run import load_data
from liere.runs.model import build_model, load_model
from liere.runs.run import open_run
from liere.terminal.messages import say
from liere.terminal.text_table import text_table

OFFSETS = [(4, 0), (0, 4), (8, 8), (14, 0), (0, 14), (14, 14)]
IMAGES = 32
KEYS = ("relativity", "patches", "prefix")


def main() -> None:
    """Measure each run, print a table, and optionally write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, help="folders of finished runs, with their weights")
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    args = parser.parse_args()
    rows = [row for folder in args.runs for row in measure(folder)]
    header = ["run", "placement", "trained", "relativity error", "patches", "CLS"]
    lines = [
        [row["encoding"], f"{row['position_shift']:g}", "yes" if row["trained"] else "no"]
        + [" ".join(f"{layer[key]:.3f}" if layer[key] is not None else "-" for layer in row["layers"]) for key in KEYS]
        for row in rows
    ]
    for line in text_table(header, lines):
        say(line)
    say("one number per layer: generators alone, attention of patches, attention of CLS")
    if args.json:
        content = {
            "command": "python tools/placement_sensitivity.py RUN ... --json FILE",
            "offsets": OFFSETS,
            "images": IMAGES,
            "machine": machine(),
            "rows": rows,
        }
        write_atomically(args.json, json.dumps(content, indent=1) + "\n")


def measure(folder: Path) -> list[dict[str, Any]]:
    """Return the measurements of a run's model at initialization and after training."""
    run = open_run(folder)
    data = load_data(run, "test", length=IMAGES)
    images, _ = data.batch(range(IMAGES))
    facts = run.facts
    pixels = to_float(images, mean=torch.tensor(facts.mean), std=torch.tensor(facts.std))
    rows = []
    for trained in (False, True):
        model = load_model(run.config, run.final_weights, facts) if trained else build_model(run.config, facts).eval()
        numbers = inspect_model(model)
        changes = attention_changes(model, pixels, OFFSETS)
        layers = [
            {"relativity": layer.relativity, **asdict(change)}
            for layer, change in zip(numbers.layers, changes, strict=True)
        ]
        rows.append(
            {
                "encoding": run.config.model.encoding,
                "options": run.config.model.options,
                "seed": run.config.training.seed,
                "position_shift": run.config.model.position_shift,
                "pool": run.config.model.pool,
                "trained": trained,
                "layers": layers,
            }
        )
    return rows


if __name__ == "__main__":
    main()
