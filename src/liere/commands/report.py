"""`liere report`: write a report on finished runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from liere.commands.arguments import this_command
from liere.commands.results import show_result

__all__ = ["HELP", "add_arguments", "run"]

HELP = "write a report (HTML, Markdown and JSON) on finished, evaluated runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="folder of a run, or of a comparison with all its runs"
    )
    parser.add_argument("--name", default="report", help="name of the files (default: report)")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("liere-report"),
        metavar="DIR",
        help="folder for the report (default: ./liere-report)",
    )


def run(args: argparse.Namespace) -> None:
    """Write the report and print its paths."""
    from liere import toolkit

    show_result(lambda: toolkit.report(args.runs, out=args.out, name=args.name, command=this_command()))
