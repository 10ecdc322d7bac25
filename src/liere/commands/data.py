"""`liere data`: look at data sets."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from liere.commands.arguments import positive_number
from liere.errors import InputError, suggest
from liere.terminal.messages import say

if TYPE_CHECKING:
    from liere.data.examples import ExampleSet

__all__ = ["HELP", "add_arguments", "run"]

HELP = "look at a data set: a sheet of examples with their labels"
DATA_SETS = ("spatial", "cifar10", "cifar100", "imagenet", "ucf101", "images", "videos", "npz")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    preview = actions.add_parser("preview", help="write a contact sheet with labels")
    preview.add_argument("name", metavar="NAME", help=f"data set: {', '.join(DATA_SETS)}")
    preview.add_argument("--root", metavar="DIR", help="where the data set is (default: ./data)")
    preview.add_argument("--size", type=positive_number, metavar="N", help="image size (default: of the data set)")
    preview.add_argument("--split", default="train", help="train, val or test (default: train)")
    preview.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the data set (default: 0)")
    preview.add_argument("--count", type=positive_number, default=24, metavar="N", help="examples (default: 24)")
    preview.add_argument(
        "--distance",
        type=positive_number,
        nargs="+",
        default=[1],
        metavar="N",
        help="spatial: cells from the Y to its target, or the ends of a range (default: 1)",
    )
    preview.add_argument("--distractor-arrows", type=int, default=7, metavar="N", help="spatial (default: 7)")
    preview.add_argument("--distractor-letters", type=int, default=5, metavar="N", help="spatial (default: 5)")
    preview.add_argument("--colours", default="black", help="spatial: black or random (default: black)")
    preview.add_argument("--out", type=Path, metavar="FILE", help="picture (default: ./<name>-<split>-<size>.png)")


def run(args: argparse.Namespace) -> None:
    """Draw the sheet."""
    if args.name not in DATA_SETS:
        raise InputError(f"unknown data set {args.name!r}: {suggest(args.name, DATA_SETS)}")
    from liere.files.writing import prepare_folder
    from liere.report.contact_sheet import draw_contact_sheet

    data = _open(args)
    size = data.facts.image_size[-1]
    path = args.out or Path(f"{args.name}-{args.split}-{size}.png")
    prepare_folder(path.parent, f"--out {path}: the folder")
    question = ": which way points the arrow at the Y's base?" if args.name == "spatial" else ""
    title = f"{args.name}, {args.split}, {size} px, {len(data):,} examples{question}"
    draw_contact_sheet(data, min(args.count, len(data)), path, title)
    say(f"wrote {path}")


def _open(args: argparse.Namespace) -> ExampleSet:
    if args.name == "spatial":
        from liere.data import SpatialReasoning

        return SpatialReasoning(
            args.size or 108,
            args.split,
            args.seed,
            distance=args.distance[0] if len(args.distance) == 1 else tuple(args.distance),
            distractor_arrows=args.distractor_arrows,
            distractor_letters=args.distractor_letters,
            colours=args.colours,
        )
    if (args.distance, args.distractor_arrows, args.distractor_letters, args.colours) != ([1], 7, 5, "black"):
        raise InputError(f"--distance, --distractor-arrows, --distractor-letters and --colours are not for {args.name}")
    from liere.runs.config_file import parse_config

    fields = {"name": args.name, "root": args.root, "size": args.size, "seed": args.seed}
    try:
        return parse_config({"data": fields}).data.load(args.split)
    except ValueError as error:
        raise InputError(str(error).replace("--data.root", "--root")) from None
