"""`liere report`: what runs found, as a page."""

from __future__ import annotations

import argparse
from pathlib import Path

from liere.commands.arguments import this_command
from liere.commands.results import show_result

__all__ = ["HELP", "add_arguments", "run"]

HELP = "make a page, Markdown and JSON of finished, evaluated runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="folders of runs, or of comparisons with all their runs"
    )
    parser.add_argument("--name", default="report", help="what to call the files (default: report)")
    parser.add_argument(
        "--out", type=Path, default=Path("liere-report"), metavar="DIR", help="folder (default: ./liere-report)"
    )


def run(args: argparse.Namespace) -> None:
    """Report."""
    from liere import toolkit

    show_result(lambda: toolkit.report(args.runs, out=args.out, name=args.name, command=this_command()))
