"""`liere eval`: test a run, at any resolution."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from liere.commands.arguments import positive_number
from liere.runs.conditions import POLICIES, SCALES, SHUFFLES
from liere.terminal.messages import say, warn

__all__ = ["HELP", "add_arguments", "run"]

HELP = "test a finished run at any image sizes, with other positions or shuffled, with confidence intervals"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("run_folder", type=Path, metavar="RUN", help="folder of the run")
    parser.add_argument(
        "--sizes", type=positive_number, nargs="+", metavar="N", help="image sizes (default: as trained)"
    )
    parser.add_argument(
        "--policies",
        nargs="+",
        choices=POLICIES,
        default=[""],
        metavar="NAME",
        help=f"positions at these sizes: {', '.join(POLICIES)} (default: as trained)",
    )
    parser.add_argument(
        "--shuffle",
        nargs="+",
        choices=SHUFFLES,
        default=[],
        metavar="WHAT",
        help=f"test as well with these in random order: {', '.join(SHUFFLES)}",
    )
    parser.add_argument(
        "--attention-scale",
        nargs="+",
        choices=SCALES,
        default=[""],
        metavar="NAME",
        help=f"scale of the attention scores: {', '.join(SCALES)}; log makes them grow with the logarithm of the "
        "number of tokens (default: as trained)",
    )
    parser.add_argument(
        "--placements",
        nargs="+",
        default=[""],
        metavar="N",
        help="move the grid by so many token steps on every axis, or on each, like 0,8; shows how much the "
        "model depends on where the grid lies (default: not moved)",
    )
    parser.add_argument("--examples", type=positive_number, metavar="N", help="test examples (default: all)")
    parser.add_argument("--batch-size", type=positive_number, metavar="N", help="(default: 100 images or clips)")
    parser.add_argument("--best", action="store_true", help="weights of the best validation, not the final ones")
    parser.add_argument(
        "--devices", type=positive_number, default=1, metavar="N", help="devices; with cpu: processes (default: 1)"
    )
    parser.add_argument("--accelerator", choices=("auto", "cpu", "gpu"), help="(default: as trained)")
    parser.add_argument("--data.root", dest="data_root", metavar="X", help="where the data are (default: as trained)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of sentences")


def run(args: argparse.Namespace) -> None:
    """Evaluate, print and write."""
    from liere import toolkit

    scores = toolkit.evaluate(
        args.run_folder,
        sizes=args.sizes,
        policies=args.policies,
        shuffle=args.shuffle,
        attention_scales=args.attention_scale,
        placements=args.placements,
        examples=args.examples,
        batch_size=args.batch_size,
        best=args.best,
        devices=args.devices,
        accelerator=args.accelerator,
        root=args.data_root,
        say=warn if args.json else say,
    )
    if args.json and scores.records:
        say(json.dumps(scores.records, indent=1))
