"""`liere compare`: compare several encodings with several seeds and one recipe."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from liere.commands.arguments import positive_number, seed_number, side_number, this_command
from liere.commands.executor_arguments import add_executor_arguments, given_executor
from liere.commands.fields import add_fields, given_fields
from liere.commands.results import show_result
from liere.comparison.default_encodings import PAPER_ENCODINGS
from liere.terminal.messages import say

__all__ = ["HELP", "add_arguments", "run"]

HELP = "train several encodings with the same recipe and several seeds, evaluate them, and write a report"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.usage = (
        "liere compare --config FILE [--encodings NAME ...] [--seeds N ...] [--sizes N ...]\n"
        "                     [--examples N] [--jobs N] [--out DIR] [--executor local|ray|slurm] [--dry-run]\n"
        "                     [--SECTION.FIELD VALUE ...]"
    )
    parser.add_argument(
        "--config", type=Path, required=True, metavar="FILE", help="configuration file with the recipe of all runs"
    )
    parser.add_argument(
        "--encodings",
        nargs="+",
        default=list(PAPER_ENCODINGS),
        metavar="NAME",
        help="encodings, optionally with options as in absolute:init_std=1, or your own as package.module:Class "
        f"(default: {' '.join(PAPER_ENCODINGS)})",
    )
    parser.add_argument(
        "--seeds", nargs="+", type=seed_number, default=[0, 1, 2], metavar="N", help="seeds (default: 0 1 2)"
    )
    parser.add_argument(
        "--sizes", nargs="+", type=side_number, metavar="N", help="image sizes to test at (default: as trained)"
    )
    parser.add_argument("--examples", type=positive_number, metavar="N", help="number of test examples (default: all)")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("liere-compare"),
        metavar="DIR",
        help="folder for runs and report; finished runs there are not repeated (default: ./liere-compare)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the runs, their cost and how they would be executed, and stop"
    )
    add_executor_arguments(parser)
    add_fields(parser)


def run(args: argparse.Namespace) -> None:
    """Compare encodings and print the result."""
    fields = given_fields(args)
    from liere import toolkit
    from liere.comparison.dry_run import describe_plan

    options: dict[str, Any] = {
        "encodings": args.encodings,
        "seeds": args.seeds,
        "sizes": args.sizes,
        "examples": args.examples,
        "out": args.out,
        "overrides": fields,
        "jobs": args.jobs,
        "executor": given_executor(args),
    }
    if args.dry_run:
        say("\n".join(describe_plan(toolkit.plan_comparison(args.config, **options))))
        return
    show_result(lambda: toolkit.compare(args.config, **options, command=this_command()))
