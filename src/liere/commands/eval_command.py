"""`liere eval`: test a run, at any resolution."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from liere.commands.arguments import positive_number
from liere.runs.conditions import POLICIES, SCALES, SHUFFLES, Condition
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
    from liere.runs.run import open_run

    run = open_run(args.run_folder, {} if args.data_root is None else {"data.root": args.data_root})
    hardware = run.config.hardware.model_copy(update={"devices": args.devices, "nodes": 1})
    if args.accelerator is not None:
        hardware = hardware.model_copy(update={"accelerator": args.accelerator})
    hardware.check()
    run = replace(run, config=run.config.model_copy(update={"hardware": hardware}))
    run.result()  # whether it is finished is told before the long import
    from liere.evaluation.evaluate import evaluate

    records = evaluate(
        run,
        [
            Condition(size, policy, shuffle, scale, placement)
            for size in args.sizes or [run.data.side]
            for policy in args.policies
            for scale in args.attention_scale
            for placement in args.placements
            for shuffle in ("", *args.shuffle)
        ],
        examples=args.examples,
        batch_size=args.batch_size,
        best=args.best,
        say=warn if args.json else say,
    )
    if args.json and records:
        say(json.dumps(records, indent=1))
    if len(args.placements) > 1:
        from liere.evaluation.placements import describe_placements

        for line in describe_placements(run, records):
            (warn if args.json else say)(line)
