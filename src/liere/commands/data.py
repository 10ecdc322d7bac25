"""`liere data`: preview data sets."""

from __future__ import annotations

import argparse
import math
from functools import partial
from pathlib import Path

from liere.commands.arguments import positive_number
from liere.commands.fields import add_fields, given_fields
from liere.errors import InputError, suggest
from liere.terminal.messages import say

__all__ = ["HELP", "add_arguments", "run"]

HELP = "preview a data set as a sheet of labeled examples"
MOST_EXAMPLES, MOST_VALUES = 1_000, 60_000_000
"""Upper limits for the examples of a sheet, and for their values in all: matplotlib keeps some 20 bytes per value."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    sheet = "write an image with examples of a data set and their labels"
    preview = actions.add_parser("preview", help=sheet, description=f"{sheet.capitalize()}.")
    preview.set_defaults(parser=preview)  # for suggestions when an option is misspelled
    preview.add_argument(
        "name", metavar="NAME", help="data set, such as spatial or cifar10; see docs/how-to/data-sets.md"
    )
    preview.add_argument("--split", default="train", help="train, val or test (default: train)")
    preview.add_argument(
        "--count",
        type=partial(positive_number, most=MOST_EXAMPLES),
        default=24,
        metavar="N",
        help="number of examples (default: 24)",
    )
    preview.add_argument("--out", type=Path, metavar="FILE", help="image file (default: ./<name>-<split>-<size>.png)")
    add_fields(preview, only="data")


def run(args: argparse.Namespace) -> None:
    """Draw the sheet and print its path."""
    if "fields_missing" in args:
        raise ImportError(args.fields_missing)
    from liere.data.registry import SECTIONS, find_section
    from liere.files.writing import check_replaceable, prepare_folder
    from liere.report.contact_sheet import draw_contact_sheet
    from liere.report.drawing import check_picture, require_matplotlib
    from liere.runs.config_file import parse_config

    if find_section(args.name) is None:
        known = [section.model_fields["name"].default for section in SECTIONS if section.is_on_command_line]
        raise InputError(f"unknown data set {args.name!r}: {suggest(args.name, known)}")
    data = parse_config({"data": {"name": args.name}}, given_fields(args)).data.load(args.split)
    size, count = data.facts.image_size[-1], min(args.count, len(data))
    if (values := count * data.facts.channels * math.prod(data.facts.image_size)) > MOST_VALUES:
        raise InputError(
            f"--count {count} at --size {size} is {values:,} pixel values, but a sheet may have at most "
            f"{MOST_VALUES:,}: reduce --count or --size"
        )
    path = args.out or Path(f"{args.name}-{args.split}-{size}.png")
    check_picture(path, "--out")
    require_matplotlib()
    prepare_folder(path.parent, f"--out {path}: the folder")
    check_replaceable(path)
    question = ": which way does the arrow at the base of the Y point?" if args.name == "spatial" else ""
    title = f"{args.name}, {args.split}, {size} px, {len(data):,} examples{question}"
    draw_contact_sheet(data, count, path, title)
    say(f"wrote {path}")
