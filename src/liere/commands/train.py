"""`liere train`: train a model, or resume an interrupted run."""

from __future__ import annotations

import argparse
from pathlib import Path

from liere.commands.arguments import positive_number
from liere.commands.fields import add_fields, given_fields
from liere.errors import InputError

__all__ = ["HELP", "add_arguments", "run"]

HELP = "train a model from a configuration, or resume a run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.usage = (
        "liere train (--config FILE [--out RUN] [--SECTION.FIELD VALUE ...] | --resume RUN)\n"
        "                   [--steps N] [--dry-run]"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="configuration file, like those in experiments/")
    parser.add_argument(
        "--out", type=Path, metavar="RUN", help="folder for the new run (default: ./runs/<configuration>-seed<seed>)"
    )
    parser.add_argument("--resume", type=Path, metavar="RUN", help="resume the run in this folder")
    parser.add_argument(
        "--steps", type=positive_number, metavar="N", help="stop after N steps; continue later with --resume"
    )
    parser.add_argument("--dry-run", action="store_true", help="check everything and print the cost, without training")
    add_fields(parser)


def run(args: argparse.Namespace) -> int:
    """Train; return 0, or 128 plus the number of the signal that stopped training."""
    fields = given_fields(args)
    if (args.config is None) == (args.resume is None):
        raise InputError("give either --config FILE for a new run or --resume RUN to resume one")
    if args.resume is not None and args.out is not None:
        raise InputError(f"--out {args.out} is for new runs only, but --resume already names a folder: leave out --out")
    from liere import toolkit

    options = {"overrides": fields, "steps": args.steps, "dry": args.dry_run}
    try:
        if args.resume is not None:
            toolkit.resume(args.resume, **options)
        else:
            toolkit.train(args.config, out=args.out, resume=False, **options)
    except toolkit.SignalStop as stop:
        return 128 + stop.signal
    return 0
