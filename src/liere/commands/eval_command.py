"""`liere eval`: evaluate a run at any resolution."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from liere.commands.arguments import positive_number, side_number
from liere.runs.conditions import POLICIES, SCALES, SHUFFLES
from liere.terminal.messages import say, warn

__all__ = ["HELP", "add_arguments", "run"]

HELP = "evaluate a finished run at any image size, position policy or shuffling, with confidence intervals"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("run_folder", type=Path, metavar="RUN", help="folder of the run")
    parser.add_argument(
        "--sizes", type=side_number, nargs="+", metavar="N", help="image sizes in pixels (default: as trained)"
    )
    parser.add_argument(
        "--policies",
        nargs="+",
        choices=POLICIES,
        default=[""],
        metavar="NAME",
        help=f"how positions behave at other sizes: {', '.join(POLICIES)} (default: as trained)",
    )
    parser.add_argument(
        "--shuffle",
        nargs="+",
        choices=SHUFFLES,
        default=[],
        metavar="WHAT",
        help=f"also evaluate with these in random order: {', '.join(SHUFFLES)}",
    )
    parser.add_argument(
        "--attention-scale",
        nargs="+",
        choices=SCALES,
        default=[""],
        metavar="NAME",
        help=f"scale of the attention scores: {', '.join(SCALES)}; log scales them with the logarithm of the "
        "number of tokens (default: as trained)",
    )
    parser.add_argument(
        "--placements",
        nargs="+",
        default=[""],
        metavar="N",
        help="move the grid by N token steps on every axis, or per axis, as in 0,8, to measure how much the "
        "model depends on absolute positions (default: not moved)",
    )
    parser.add_argument("--examples", type=positive_number, metavar="N", help="number of test examples (default: all)")
    parser.add_argument(
        "--batch-size", type=positive_number, metavar="N", help="images or clips per batch (default: 100)"
    )
    parser.add_argument(
        "--best", action="store_true", help="use the weights with the best validation score, not the final ones"
    )
    parser.add_argument(
        "--devices", type=positive_number, default=1, metavar="N", help="number of GPUs or CPU processes (default: 1)"
    )
    parser.add_argument("--accelerator", choices=("auto", "cpu", "gpu"), help="hardware to use (default: as trained)")
    parser.add_argument("--data.root", dest="data_root", metavar="DIR", help="folder of the data (default: as trained)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def run(args: argparse.Namespace) -> None:
    """Evaluate a run and print its scores."""
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
