"""`liere demo`: show that LieRE solves the spatial task at which absolute positions fail, also on larger images."""

from __future__ import annotations

import argparse
from pathlib import Path

from liere.commands.arguments import positive_number, seed_number, this_command
from liere.commands.results import show_result

__all__ = ["HELP", "add_arguments", "run"]

HELP = "train each encoding on the paper's spatial task and show which of them learn it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("liere-demo"),
        metavar="DIR",
        help="folder for runs and report; finished runs there are not repeated (default: ./liere-demo)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="train only two encodings on a small grid, in under two minutes"
    )
    parser.add_argument("--seed", type=seed_number, default=0, metavar="N", help="seed of all runs (default: 0)")
    parser.add_argument(
        "--jobs", type=positive_number, metavar="N", help="number of parallel runs (default: one per GPU or core)"
    )


def run(args: argparse.Namespace) -> None:
    """Compare the encodings and print the result."""
    from liere import toolkit

    show_result(
        lambda: toolkit.demo(args.out, quick=args.quick, seed=args.seed, jobs=args.jobs, command=this_command())
    )
