"""`liere report`: what runs found, as a page."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from liere.terminal.messages import say, table

if TYPE_CHECKING:
    from liere.runs.run import Run

__all__ = ["HELP", "add_arguments", "run", "write_and_show"]

HELP = "make a page, Markdown and JSON of finished, evaluated runs"
LONGEST_NAME = 200  # bytes; files have endings besides


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
    from liere.runs.find_runs import find_runs

    is_plain = args.name.isprintable() and len(args.name.encode()) <= LONGEST_NAME
    if not args.name or not is_plain or Path(args.name).name != args.name or args.name.startswith("."):
        raise ValueError(f"--name {args.name!r} must be a plain file name, such as report: use --out for the folder")
    write_and_show(find_runs(args.runs), args.out, "liere " + shlex.join(sys.argv[1:]), args.name)


def write_and_show(runs: Sequence[Run], folder: Path, command: str, name: str = "report") -> Path:
    """Write the report of runs to a folder, print its table and its finding, and return its page."""
    from liere.evaluation.summary import summarize
    from liere.files.writing import prepare_folder
    from liere.report.headline import headline
    from liere.report.report_files import write_report
    from liere.report.result_table import result_table
    from liere.report.task_pictures import make_pictures
    from liere.reproduce.printed_beside import add_printed_numbers

    comparison = summarize(runs, command=command, root=folder)
    add_printed_numbers(comparison, [run.config for run in runs])
    prepare_folder(folder, "--out")
    sizes = [comparison["train_size"], max(comparison["sizes"])]
    page = write_report(comparison, make_pictures(runs, sizes), folder, name)
    content = result_table(comparison)
    say()
    for line in table(content.header, content.texts):
        say(line)
    for note in content.notes:
        say(note)
    say()
    say(headline(comparison))
    say(f"report: {page}")
    return page
